// Reads lmemo.toml: bytes in, a flat list of keys and values with their lines out. Which keys there are, and what
// they may hold, stands in settings_table.cpp.
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

// `file` is for the messages only.
Result<std::vector<ConfigEntry>> parse_config(std::string_view bytes, const std::string& file);

}  // namespace lmemo::cli
