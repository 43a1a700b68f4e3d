// Sizes, ages, counts and times as people write and read them: "2GiB", "30d", "1,234", "3 h ago".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lmemo/result.h"

namespace lmemo {

// "2GiB", "1.5 MB", "4096". B, kB, MB, … are powers of 1000, KiB, MiB, … powers of 1024; case does not matter.
// A bare letter (2G) is refused, because it means 1000 to some and 1024 to others.
Result<uint64_t> parse_byte_count(std::string_view text);
// As parse_byte_count, and "none" for 0.
Result<uint64_t> parse_byte_limit(std::string_view text);
// "30d", "12h", "1d12h", "90s"; units w, d, h, m, s. A number without a unit is refused.
Result<double> parse_duration_seconds(std::string_view text);
// "12", "1000000".
Result<uint64_t> parse_count(std::string_view text);

std::string format_byte_count(uint64_t byte_count);       // "812 B", "1.5 KiB", "10 GiB"
std::string format_byte_limit(uint64_t byte_count);       // The same; 0 is "none".
std::string format_count(uint64_t count);                 // "1,234,567"
std::string format_seconds(double seconds);               // "0.8 ms", "1.24 s", "3 min 20 s", "2 d 4 h"
std::string format_time_utc(int64_t time_ns);             // "2025-11-16T00:49:07Z"
std::string format_age(int64_t time_ns, int64_t now_ns);  // "3 h ago", "just now"
std::string format_fixed(double value, int decimals);

}  // namespace lmemo
