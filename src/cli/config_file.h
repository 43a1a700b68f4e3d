// Reads lmemo.toml: bytes in, a flat list of keys and values with their lines out. Which keys there are, and what
// they may hold, stands in settings_table.cpp.
//
// The language is a part of TOML 1.0: comments, [tables], bare, quoted and dotted keys, texts in one line, whole
// numbers, fractions, booleans. Lists, dates, inline tables and texts over several lines are refused by name.
// What is accepted means the same as in TOML (tests/cli/config_file_test.py compares with Python's tomllib).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lmemo/result.h"

namespace lmemo::cli {

inline constexpr size_t kMaxConfigBytes = 64 << 10;

struct ConfigEntry {
  std::string key;  // "store", "limits.tokens"
  std::variant<bool, int64_t, double, std::string> value;
  uint32_t line = 0;
};

// In the order of the file. `file` is for the messages only.
Result<std::vector<ConfigEntry>> parse_config(std::string_view bytes, const std::string& file);

}  // namespace lmemo::cli
