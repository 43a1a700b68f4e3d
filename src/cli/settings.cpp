#include "cli/settings.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/units.h"
#include "cli/settings_table.h"

namespace lmemo::cli {
namespace {

using std::filesystem::path;

constexpr const char* kProjectFileName = "lmemo.toml";

std::optional<std::string> variable(const CliEnvironment& environment, const std::string& name) {
  if (name.empty() || !environment.variable) return std::nullopt;
  const auto value = environment.variable(name);
  return value && !value->empty() ? value : std::nullopt;
}

// An XDG directory: the variable if it holds an absolute path, else a directory under the home.
std::optional<path> user_directory(const CliEnvironment& environment, const std::string& name,
                                   const char* under_home) {
  if (const auto value = variable(environment, name); value && path(*value).is_absolute())
    return path(*value);
  if (const auto home = variable(environment, "HOME")) return path(*home) / under_home;
  return std::nullopt;
}

// "~/x" is under the home, "x" under `base`.
std::string absolute_text(const std::string& text, const path& base, const CliEnvironment& environment) {
  path result = text;
  const auto home = variable(environment, "HOME");
  if (home && (text == "~" || text.starts_with("~/")))
    result = path(*home) / text.substr(std::min<size_t>(2, text.size()));
  if (result.is_relative()) result = base / result;
  result = result.lexically_normal();
  return result.has_filename() ? result.string() : result.parent_path().string();
}

std::optional<path> find_upward(const path& start) {
  std::error_code ignored;
  for (path directory = start; !directory.empty(); directory = directory.parent_path()) {
    if (std::filesystem::is_regular_file(directory / kProjectFileName, ignored))
      return directory / kProjectFileName;
    if (directory == directory.parent_path()) break;
  }
  return std::nullopt;
}

Result<std::string> read_text(const path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return Error{error && error != std::errc::no_such_file_or_directory ? ErrorCode::io_error
                                                                        : ErrorCode::invalid_argument,
                 file.string() + ": " + (error ? error.message() : "is not a file") +
                     "; expected a settings file (lmemo.toml)"};
  }
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(kMaxConfigBytes + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream.is_open() || stream.bad())
    return Error{ErrorCode::io_error, file.string() + ": cannot be read; check its permissions"};
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

struct Layer {
  path file;
  std::vector<ConfigValue> values;
};

Result<Layer> read_layer(const path& file) {
  LMEMO_ASSIGN(const std::string bytes, read_text(file));
  LMEMO_ASSIGN(std::vector<ConfigValue> values, read_config(bytes, file.string()));
  return Layer{file, std::move(values)};
}

std::string default_store(const CliEnvironment& environment) {
  const auto cache = user_directory(environment, "XDG_CACHE_HOME", ".cache");
  return (cache.value_or(environment.working_directory / ".cache") / "lmemo").string();
}

// A setting given outside of any file, or nothing.
Result<std::optional<Setting>> from_outside(const SettingSpec& spec, const Arguments& arguments,
                                            const CliEnvironment& environment,
                                            const std::string& store_variable) {
  std::optional<Setting> found;
  const bool has_own = spec.key == "store" && !store_variable.empty();
  if (const auto given = arguments.text(spec.option); given && !spec.option.empty()) {
    found = Setting{spec.key, *given, "--" + spec.option};
  } else if (const auto own = has_own ? variable(environment, store_variable) : std::nullopt) {
    found = Setting{spec.key, *own, store_variable};
  } else if (const auto value = variable(environment, spec.variable)) {
    found = Setting{spec.key, *value, spec.variable};
  } else if (spec.key == "color" && variable(environment, "NO_COLOR")) {
    found = Setting{spec.key, "never", "NO_COLOR"};
  }
  if (!found) return found;
  if (const auto complaint = complaint_about(spec, found->text))
    return Error{ErrorCode::invalid_argument, found->origin + ": " + *complaint};
  if (spec.type == SettingType::path)
    found->text = absolute_text(found->text, environment.working_directory, environment);
  return found;
}

}  // namespace

Result<Settings> load_settings(const Arguments& arguments, const CliEnvironment& environment,
                               const std::string& store_variable) {
  Settings settings;
  std::vector<Layer> layers;

  // A file that is named must be there; one that is looked for may be missing.
  std::optional<std::string> named = arguments.text("config");
  if (!named) named = variable(environment, "LMEMO_CONFIG");
  if (named) {
    const path file = absolute_text(*named, environment.working_directory, environment);
    LMEMO_ASSIGN(Layer layer, read_layer(file));
    layers.push_back(std::move(layer));
    settings.files_.push_back({file, "named", true});
  } else if (const auto file = find_upward(environment.working_directory)) {
    LMEMO_ASSIGN(Layer layer, read_layer(*file));
    layers.push_back(std::move(layer));
    settings.files_.push_back({*file, "project", true});
  } else {
    settings.files_.push_back({environment.working_directory / kProjectFileName, "project", false});
  }
  if (const auto directory = user_directory(environment, "XDG_CONFIG_HOME", ".config")) {
    const path file = *directory / "lmemo" / "config.toml";
    std::error_code ignored;
    const bool exists = std::filesystem::exists(file, ignored);
    if (exists) {
      LMEMO_ASSIGN(Layer layer, read_layer(file));
      layers.push_back(std::move(layer));
    }
    settings.files_.push_back({file, "user", exists});
  }

  // Strongest first; a key that is already there stays.
  const auto add = [&](Setting setting) {
    if (!settings.find(setting.key)) settings.all_.push_back(std::move(setting));
  };
  for (const SettingSpec& spec : setting_specs()) {
    LMEMO_ASSIGN(std::optional<Setting> setting, from_outside(spec, arguments, environment, store_variable));
    if (setting) add(std::move(*setting));
  }
  for (const Layer& layer : layers) {
    for (const ConfigValue& value : layer.values) {
      const bool is_path = find_setting(value.key)->type == SettingType::path;
      add({value.key, is_path ? absolute_text(value.text, layer.file.parent_path(), environment) : value.text,
           layer.file.string() + ":" + std::to_string(value.line)});
    }
  }
  for (const SettingSpec& spec : setting_specs()) {
    if (spec.key.find('.') != std::string::npos)
      continue;  // What a section does not name, its commands decide.
    add({spec.key, spec.key == "store" ? default_store(environment) : spec.default_text, "default"});
  }
  std::sort(settings.all_.begin(), settings.all_.end(),
            [](const Setting& a, const Setting& b) { return a.key < b.key; });
  return settings;
}

const Setting* Settings::find(std::string_view key) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Setting& setting) { return setting.key == key; });
  return found == all_.end() ? nullptr : &*found;
}

path Settings::store() const { return find("store")->text; }
std::string Settings::color() const { return find("color")->text; }

StoreOptions Settings::store_options() const {
  constexpr std::string_view kLimits = "limits.";
  StoreOptions options;
  options.max_bytes = parse_byte_limit(find("max_bytes")->text).value();
  options.check = find("check")->text == "first_find" ? CheckPolicy::first_find : CheckPolicy::every_find;
  for (const Setting& setting : all_)
    if (setting.key.starts_with(kLimits))
      options.max_bytes_by_kind[setting.key.substr(kLimits.size())] = parse_byte_limit(setting.text).value();
  return options;
}

}  // namespace lmemo::cli
