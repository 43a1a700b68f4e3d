// The only file that sees toml++: it costs three seconds to compile.
#include "cli/config_file.h"

#include <algorithm>
#include <optional>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace lmemo::cli {
namespace {

// toml++ builds, walks and destroys one table inside the other for each dot of a key, by recursion.
constexpr ptrdiff_t kMaxDots = 2048;
constexpr size_t kMaxDepth = 4;

Error config_error(const std::string& file, uint32_t line, const std::string& message) {
  const std::string where = line > 0 ? file + ":" + std::to_string(line) : file;
  return Error{ErrorCode::invalid_argument, where + ": " + message};
}

// Appends the entries under `table`; an error if something is neither a table nor a plain value.
Status flatten(const toml::table& table, const std::string& prefix, size_t depth, const std::string& file,
               std::vector<ConfigEntry>& entries) {
  for (const auto& [toml_key, node] : table) {
    const std::string key = prefix + std::string(toml_key.str());
    const uint32_t line = toml_key.source().begin.line;
    if (const toml::table* inner = node.as_table()) {
      if (depth >= kMaxDepth) return config_error(file, line, "\"" + key + "\" is nested too deeply");
      LMEMO_TRY(flatten(*inner, key + ".", depth + 1, file, entries));
    } else if (const auto* text = node.as_string()) {
      entries.push_back({key, text->get(), line});
    } else if (const auto* number = node.as_integer()) {
      entries.push_back({key, number->get(), line});
    } else if (const auto* truth = node.as_boolean()) {
      entries.push_back({key, truth->get(), line});
    } else if (const auto* real = node.as_floating_point()) {
      entries.push_back({key, real->get(), line});
    } else {
      return config_error(file, line, "\"" + key + "\" holds a list or a date; expected a text or a number");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxConfigBytes)
    return config_error(file, 0,
                        std::to_string(bytes.size()) + " bytes; expected a settings file of at most " +
                            std::to_string(kMaxConfigBytes));
  if (std::count(bytes.begin(), bytes.end(), '.') > kMaxDots)
    return config_error(file, 0, "too many dots for a settings file");
  const toml::parse_result parsed = toml::parse(bytes, std::string_view(file));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return config_error(file, error.source().begin.line, "not TOML: " + std::string(error.description()));
  }
  std::vector<ConfigEntry> entries;
  LMEMO_TRY(flatten(parsed.table(), "", 0, file, entries));
  // In the order in which they were written, so that the first mistake is the one that is named.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ConfigEntry& a, const ConfigEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace lmemo::cli
