#include "base/json_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace lmemo {
namespace {

std::string written(const auto& value) {
  JsonWriter json;
  json.value(value);
  return json.text();
}

TEST_CASE("objects and arrays nest, with commas where they belong") {
  JsonWriter json;
  json.begin_object();
  json.member("entries", 12);
  json.begin_array("kinds");
  json.value("tokens");
  json.value("forward");
  json.end_array();
  json.begin_object("none");
  json.end_object();
  json.begin_array("also_none");
  json.end_array();
  json.member_null("limit");
  json.member("asked", std::optional<int>());
  json.end_object();
  CHECK(json.text() ==
        "{\n  \"entries\": 12,\n  \"kinds\": [\n    \"tokens\",\n    \"forward\"\n  ],\n  \"none\": {},\n"
        "  \"also_none\": [],\n  \"limit\": null,\n  \"asked\": null\n}");
}

TEST_CASE("numbers keep every digit, and what JSON cannot say becomes null") {
  CHECK(written(uint64_t{18446744073709551615u}) == "18446744073709551615");
  CHECK(written(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(written(0.1) == "0.1");
  CHECK(written(true) == "true");
  CHECK(written(std::nan("")) == "null");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("any bytes become a valid JSON string") {
  CHECK(written("a\"b\\c\n\t\x01\x7f") == "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
  CHECK(written("größe €  😀") == "\"größe €  😀\"");
  CHECK(written("\xff") == "\"\xEF\xBF\xBD\"");
  CHECK(written("\xC3") == "\"\xEF\xBF\xBD\"");                                  // Cut.
  CHECK(written("\xC0\xAF") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                  // Too long for its value.
  CHECK(written("\xED\xA0\x80") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // Half of a surrogate pair.
  CHECK(written("\xF4\x90\x80\x80").find('\xF4') == std::string::npos);          // Beyond Unicode.
  CHECK(written(std::string("a\0b", 3)) == "\"a\\u0000b\"");
}

}  // namespace
}  // namespace lmemo
