#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

namespace lmemo {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 12> kByteUnits = {{
    {"", 1},
    {"b", 1},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"pb", 1e15},
    {"kib", 1024.0},
    {"mib", 1048576.0},
    {"gib", 1073741824.0},
    {"tib", 1099511627776.0},
    {"pib", 1125899906842624.0},
}};

constexpr std::array<Unit, 5> kTimeUnits = {{{"w", 604800}, {"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}};

constexpr double kMaxSeconds = 1e11;  // 3,000 years: more is a slip of the finger.

Error not_a(std::string_view what, std::string_view found, std::string_view expected) {
  return Error{ErrorCode::invalid_argument, "not " + std::string(what) + ": \"" + std::string(found) +
                                                "\"; expected " + std::string(expected)};
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

std::string_view without_outer_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes "12" or "1.5" off the front. Digits first, so that "inf", "nan", "-1" and "0x10" are not numbers.
std::optional<double> take_number(std::string_view& text) {
  size_t length = 0;
  bool has_point = false;
  while (length < text.size()) {
    const char c = text[length];
    const bool is_point = c == '.' && !has_point && length > 0;
    if (!is_point && (c < '0' || c > '9')) break;
    has_point = has_point || is_point;
    ++length;
  }
  if (length == 0 || text[length - 1] == '.') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, value);
  if (error != std::errc() || end != text.data() + length) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

std::string with_digits(double value) {
  if (value >= 99.95) return format_fixed(value, 0);
  std::string text = format_fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

Result<uint64_t> parse_byte_count(std::string_view text) {
  constexpr std::string_view kExpected = "a size such as 500MB, 2GiB or 4096 (bytes)";
  std::string_view rest = without_outer_spaces(text);
  // Whole numbers of bytes stay exact beyond 2^53.
  uint64_t exact = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), exact);
  if (error == std::errc() && end == rest.data() + rest.size()) return exact;

  const std::optional<double> number = take_number(rest);
  if (!number) return not_a("a size", text, kExpected);
  const std::string unit_name = lower_case(without_outer_spaces(rest));
  const auto* const unit = std::find_if(kByteUnits.begin(), kByteUnits.end(),
                                        [&](const Unit& known) { return known.name == unit_name; });
  if (unit == kByteUnits.end()) return not_a("a size", text, kExpected);
  const double bytes = *number * unit->factor;
  if (bytes >= 18446744073709551615.0) return not_a("a size that fits in 64 bits", text, kExpected);
  return static_cast<uint64_t>(bytes);
}

Result<uint64_t> parse_byte_limit(std::string_view text) {
  if (lower_case(without_outer_spaces(text)) == "none") return uint64_t{0};
  auto bytes = parse_byte_count(text);
  if (!bytes) return not_a("a limit", text, "a size such as 500MB or 2GiB, or none");
  return bytes;
}

Result<double> parse_duration_seconds(std::string_view text) {
  constexpr std::string_view kExpected = "a time span such as 30d, 12h, 90m or 1d12h";
  std::string_view rest = without_outer_spaces(text);
  if (rest.empty()) return not_a("a time span", text, kExpected);
  double seconds = 0;
  while (!rest.empty()) {
    const std::optional<double> number = take_number(rest);
    if (!number || rest.empty()) return not_a("a time span", text, kExpected);
    const std::string unit_name = lower_case(rest.substr(0, 1));
    const auto* const unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                          [&](const Unit& known) { return known.name == unit_name; });
    if (unit == kTimeUnits.end()) return not_a("a time span", text, kExpected);
    rest = without_outer_spaces(rest.substr(1));
    seconds += *number * unit->factor;
  }
  if (seconds > kMaxSeconds) return not_a("a time span of less than 3,000 years", text, kExpected);
  return seconds;
}

Result<uint64_t> parse_count(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    return not_a("a count", text, "a whole number such as 20");
  return count;
}

std::string format_byte_count(uint64_t byte_count) {
  constexpr std::array<std::string_view, 7> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(byte_count);
  size_t name = 0;
  // 1023.96 would be shown as "1024.0": the next unit says it better.
  while (value >= 1023.95 && name + 1 < kNames.size()) {
    value /= 1024;
    ++name;
  }
  return with_digits(value) + " " + std::string(kNames[name]);
}

std::string format_byte_limit(uint64_t byte_count) {
  return byte_count == 0 ? "none" : format_byte_count(byte_count);
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4)
    digits.insert(digits.size() - from_end, ",");
  return digits;
}

std::string format_fixed(double value, int decimals) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return {text, static_cast<size_t>(std::clamp<int>(length, 0, sizeof text - 1))};
}

std::string format_seconds(double seconds) {
  if (!(seconds >= 0)) seconds = 0;
  if (seconds < 0.9995e-3) return format_fixed(seconds * 1e6, 0) + " µs";
  if (seconds < 0.9995) return format_fixed(seconds * 1e3, seconds < 0.00995 ? 1 : 0) + " ms";
  if (seconds < 59.995) return format_fixed(seconds, 2) + " s";
  constexpr std::array<std::pair<std::string_view, uint64_t>, 4> kParts = {
      {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}}};
  const auto whole = static_cast<uint64_t>(std::min(seconds + 0.5, 1e18));
  for (size_t part = 0; part + 1 < kParts.size(); ++part) {
    const auto& [name, size] = kParts[part];
    if (whole < size) continue;
    const auto& [small_name, small_size] = kParts[part + 1];
    std::string text = std::to_string(whole / size) + " " + std::string(name);
    if (const uint64_t small = whole % size / small_size; small > 0)
      text += " " + std::to_string(small) + " " + std::string(small_name);
    return text;
  }
  return std::to_string(whole) + " s";
}

std::string format_time_utc(int64_t time_ns) {
  const auto seconds = static_cast<time_t>(time_ns / 1'000'000'000 - (time_ns % 1'000'000'000 < 0 ? 1 : 0));
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

std::string format_age(int64_t time_ns, int64_t now_ns) {
  const double seconds = (static_cast<double>(now_ns) - static_cast<double>(time_ns)) / 1e9;
  if (seconds < -1) return "in the future";
  if (seconds < 1) return "just now";
  for (const auto& [name, size] : {std::pair{"d", 86400.0}, {"h", 3600.0}, {"min", 60.0}, {"s", 1.0}})
    if (seconds >= size) return format_fixed(std::floor(seconds / size), 0) + " " + name + " ago";
  return "just now";
}

}  // namespace lmemo
