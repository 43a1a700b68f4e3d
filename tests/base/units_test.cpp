#include "base/units.h"

#include <doctest/doctest.h>

#include "lmemo/store.h"

namespace lmemo {
namespace {

uint64_t bytes(std::string_view text) {
  const auto parsed = parse_byte_count(text);
  REQUIRE_MESSAGE(parsed.ok(), std::string(text));
  return *parsed;
}

double seconds(std::string_view text) {
  const auto parsed = parse_duration_seconds(text);
  REQUIRE_MESSAGE(parsed.ok(), std::string(text));
  return *parsed;
}

TEST_CASE("sizes are read as people write them") {
  CHECK(bytes("0") == 0);
  CHECK(bytes("4096") == 4096);
  CHECK(bytes("18446744073709551615") == UINT64_MAX);
  CHECK(bytes("812B") == 812);
  CHECK(bytes("2GiB") == uint64_t{2} << 30);
  CHECK(bytes("2 gib") == uint64_t{2} << 30);
  CHECK(bytes("1.5MiB") == 1536 * 1024);
  CHECK(bytes("500MB") == 500'000'000);
  CHECK(bytes("3kb") == 3000);
  CHECK(bytes("1PiB") == uint64_t{1} << 50);
  CHECK(bytes("10GiB") == kDefaultMaxBytes);
}

TEST_CASE("what is not a size is refused with a way out") {
  for (const char* text : {"", " ", "GiB", "2G", "2K", "-1", "+1", "1e9", "0x10", "1.", ".5", "1.2.3", "inf",
                           "nan", "2GiB!", "99999999PiB", "18446744073709551616", "2GiB2"}) {
    const auto parsed = parse_byte_count(text);
    CHECK_MESSAGE(!parsed.ok(), text);
    if (!parsed.ok()) CHECK(parsed.error().message.find("2GiB or 4096") != std::string::npos);
  }
}

TEST_CASE("a limit may be none") {
  CHECK(parse_byte_limit("none").value() == 0);
  CHECK(parse_byte_limit("NONE").value() == 0);
  CHECK(parse_byte_limit("2GiB").value() == uint64_t{2} << 30);
  CHECK(!parse_byte_limit("some").ok());
}

TEST_CASE("time spans are read as people write them") {
  CHECK(seconds("30d") == 30 * 86400);
  CHECK(seconds("12h") == 12 * 3600);
  CHECK(seconds("90m") == 5400);
  CHECK(seconds("45s") == 45);
  CHECK(seconds("2w") == 14 * 86400);
  CHECK(seconds("1d12h") == 36 * 3600);
  CHECK(seconds("1.5h") == 5400);
  CHECK(seconds("0s") == 0);
  for (const char* text : {"", "30", "d", "30x", "1d12", "-1d", "1e400d", "99999999999d", "1 d 2", "d1"})
    CHECK_MESSAGE(!parse_duration_seconds(text).ok(), text);
}

TEST_CASE("counts are whole numbers") {
  CHECK(parse_count("20").value() == 20);
  for (const char* text : {"", "-1", "1.5", "all", "99999999999999999999"}) CHECK(!parse_count(text).ok());
}

TEST_CASE("sizes, counts and spans are written for people") {
  CHECK(format_byte_count(0) == "0 B");
  CHECK(format_byte_count(1023) == "1023 B");
  CHECK(format_byte_count(1024) == "1 KiB");
  CHECK(format_byte_count(1536) == "1.5 KiB");
  CHECK(format_byte_count((uint64_t{1} << 20) - 1) == "1 MiB");
  CHECK(format_byte_count(uint64_t{10} << 30) == "10 GiB");
  CHECK(format_byte_count(uint64_t{123} << 20) == "123 MiB");
  CHECK(format_byte_count(UINT64_MAX) == "16 EiB");
  CHECK(format_byte_limit(0) == "none");
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_seconds(0.0000042) == "4 µs");
  CHECK(format_seconds(0.0063) == "6.3 ms");
  CHECK(format_seconds(0.9999) == "1.00 s");
  CHECK(format_seconds(1.237) == "1.24 s");
  CHECK(format_seconds(200) == "3 min 20 s");
  CHECK(format_seconds(7200) == "2 h");
  CHECK(format_seconds(187200) == "2 d 4 h");
  CHECK(format_seconds(-1) == "0 µs");
}

TEST_CASE("times are written in UTC, ages in the largest unit that fits") {
  constexpr int64_t kSecond = 1'000'000'000;
  CHECK(format_time_utc(0) == "1970-01-01T00:00:00Z");
  CHECK(format_time_utc(-1) == "1969-12-31T23:59:59Z");
  CHECK(format_time_utc(1763253787 * kSecond) == "2025-11-16T00:43:07Z");
  CHECK(format_age(0, kSecond / 2) == "just now");
  CHECK(format_age(0, 59 * kSecond) == "59 s ago");
  CHECK(format_age(0, 3600 * kSecond) == "1 h ago");
  CHECK(format_age(0, 86400 * 40 * kSecond) == "40 d ago");
  CHECK(format_age(10 * kSecond, 0) == "in the future");
}

}  // namespace
}  // namespace lmemo
