#include "cli/settings_table.h"

#include <algorithm>

#include "base/near_name.h"
#include "base/units.h"

namespace lmemo::cli {
namespace {

bool matches(const SettingSpec& spec, std::string_view key) {
  if (!spec.key.ends_with(".*")) return spec.key == key;
  const std::string_view section = std::string_view(spec.key).substr(0, spec.key.size() - 1);
  return key.size() > section.size() && key.starts_with(section);
}

std::string type_name(const ConfigEntry& entry) {
  constexpr std::string_view kNames[] = {"a boolean", "a whole number", "a fraction", "a text"};
  return std::string(kNames[entry.value.index()]);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string expectation(const SettingSpec& spec) {
  switch (spec.type) {
    case SettingType::path: return "a path in quotes";
    case SettingType::byte_limit: return "a size such as \"2GiB\", a number of bytes, or \"none\"";
    case SettingType::choice: return "one of " + joined(spec.choices);
    case SettingType::option: return "a text, a whole number, true or false";
  }
  return "";
}

}  // namespace

const std::vector<SettingSpec>& setting_specs() {
  static const std::vector<SettingSpec> specs = {
      {"store", SettingType::path, "store", "LMEMO_STORE", {}, "", "the directory of the store"},
      {"max_bytes",
       SettingType::byte_limit,
       "",
       "LMEMO_MAX_BYTES",
       {},
       "10GiB",
       "what the store may take on disk"},
      {"check",
       SettingType::choice,
       "",
       "LMEMO_CHECK",
       {"first_find", "every_find"},
       "first_find",
       "how often the checksum of a record is verified"},
      {"color",
       SettingType::choice,
       "color",
       "LMEMO_COLOR",
       {"auto", "always", "never"},
       "auto",
       "when to use colour"},
      {"chunks.output", SettingType::path, "", "", {}, "", "where lmemo chunks build writes"},
      {"chunks.tokenizer", SettingType::path, "", "", {}, "", "of lmemo chunks build"},
      {"chunks.*", SettingType::option, "", "", {}, "", "as the options of lmemo chunks build, with _ for -"},
      {"limits.*", SettingType::byte_limit, "", "", {}, "", "what one kind of entries may take"},
  };
  return specs;
}

const SettingSpec* find_setting(std::string_view key) {
  const auto& specs = setting_specs();
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return matches(spec, key); });
  return found == specs.end() ? nullptr : &*found;
}

std::optional<std::string> complaint_about(const SettingSpec& spec, const std::string& value) {
  switch (spec.type) {
    case SettingType::path:
      if (value.empty()) return "found an empty text; expected a path";
      if (value.find('\0') != std::string::npos) return "found a zero byte; expected a path";
      return std::nullopt;
    case SettingType::byte_limit: {
      const auto bytes = parse_byte_limit(value);
      return bytes.ok() ? std::nullopt : std::optional(bytes.error().message);
    }
    case SettingType::choice:
      if (std::find(spec.choices.begin(), spec.choices.end(), value) != spec.choices.end())
        return std::nullopt;
      return "found \"" + value + "\"; expected " + expectation(spec) + "." +
             did_you_mean(value, spec.choices);
    case SettingType::option: return std::nullopt;  // The command looks at it.
  }
  return std::nullopt;
}

Result<std::vector<ConfigValue>> read_config(std::string_view bytes, const std::string& file) {
  LMEMO_ASSIGN(const std::vector<ConfigEntry> entries, parse_config(bytes, file));
  std::vector<ConfigValue> values;
  for (const ConfigEntry& entry : entries) {
    const std::string where = file + ":" + std::to_string(entry.line) + ": ";
    const SettingSpec* spec = find_setting(entry.key);
    if (!spec) {
      std::vector<std::string> keys;
      for (const SettingSpec& known : setting_specs())
        if (known.key.ends_with(".*") || known.key.find('.') == std::string::npos) keys.push_back(known.key);
      return Error{ErrorCode::invalid_argument, where + "unknown setting \"" + entry.key +
                                                    "\"; expected one of " + joined(keys) + "." +
                                                    did_you_mean(entry.key, keys)};
    }
    std::string text;
    if (const auto* given = std::get_if<std::string>(&entry.value)) {
      text = *given;
    } else if (const auto* number = std::get_if<int64_t>(&entry.value);
               number && (spec->type == SettingType::byte_limit || spec->type == SettingType::option)) {
      text = std::to_string(*number);
    } else if (const auto* flag = std::get_if<bool>(&entry.value);
               flag && spec->type == SettingType::option) {
      text = *flag ? "true" : "false";
    } else {
      return Error{ErrorCode::invalid_argument,
                   where + entry.key + ": found " + type_name(entry) + "; expected " + expectation(*spec)};
    }
    if (const auto complaint = complaint_about(*spec, text))
      return Error{ErrorCode::invalid_argument, where + entry.key + ": " + *complaint};
    values.push_back({entry.key, text, entry.line});
  }
  return values;
}

}  // namespace lmemo::cli
