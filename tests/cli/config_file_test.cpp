#include "cli/config_file.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lmemo::cli {
namespace {

std::vector<ConfigEntry> entries(std::string_view text) {
  const auto parsed = parse_config(text, "f");
  REQUIRE_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message));
  return *parsed;
}

template <typename T>
T value(const std::string& text) {
  const auto parsed = entries("k = " + text);
  REQUIRE(parsed.size() == 1);
  const T* found = std::get_if<T>(&parsed[0].value);
  REQUIRE_MESSAGE(found, text);
  return *found;
}

std::string message(std::string_view text) {
  const auto parsed = parse_config(text, "f");
  REQUIRE_MESSAGE(!parsed.ok(), std::string(text));
  CHECK(parsed.error().code == ErrorCode::invalid_argument);
  return parsed.error().message;
}

TEST_CASE("tables, dotted and quoted keys give one flat list with lines") {
  const auto found = entries(
      "\xEF\xBB\xBF# first\r\n\r\nstore = 'C:\\x' # why\r\n[ limits ]\n  tokens=1\n'odd kind' . \"b\" = "
      "true\n\n[chunks.x]\ny = 0.5");
  REQUIRE(found.size() == 4);
  CHECK(found[0].key == "store");
  CHECK(std::get<std::string>(found[0].value) == "C:\\x");
  CHECK(found[0].line == 3);
  CHECK(found[1].key == "limits.tokens");
  CHECK(found[1].line == 5);
  CHECK(found[2].key == "limits.odd kind.b");
  CHECK(found[3].key == "chunks.x.y");
  CHECK(std::get<double>(found[3].value) == 0.5);
  CHECK(found[3].line == 9);
  CHECK(entries("").empty());
  CHECK(entries("# only a comment").empty());
}

TEST_CASE("values are what TOML says they are") {
  CHECK(value<int64_t>("0") == 0);
  CHECK(value<int64_t>("+1_000") == 1000);
  CHECK(value<int64_t>("-9223372036854775808") == INT64_MIN);
  CHECK(value<int64_t>("0xdead_beef") == 0xdeadbeef);
  CHECK(value<int64_t>("0o17") == 15);
  CHECK(value<int64_t>("0b101") == 5);
  CHECK(value<double>("1e3") == 1000);
  CHECK(value<double>("-0.5E-1") == -0.05);
  CHECK(value<double>("-inf") < 0);
  CHECK(std::isnan(value<double>("nan")));
  CHECK(value<bool>("false") == false);
  CHECK(value<std::string>("\"a\\tb\\\"\\\\\\u00e4\\U0001F600\"") == "a\tb\"\\ä😀");
  CHECK(value<std::string>("'a\\tb\"'") == "a\\tb\"");
  CHECK(value<std::string>("\"größe # no comment\"") == "größe # no comment");
  CHECK(value<std::string>("\"\"") == "");
}

TEST_CASE("what is wrong or not supported is named with its line") {
  CHECK(message("store = ") ==
        "f:1: found the end of the line; expected a text in quotes, a number of 64 bits, true or false");
  CHECK(message("\na = 1\na = 2") == "f:3: \"a\" is there twice");
  CHECK(message("[a]\n[a]") == "f:2: the table [a] is there twice");
  CHECK(message("a = 1\n[a]") == "f:2: \"a\" already has a value; it cannot be a table as well");
  CHECK(message("a = 1\na.b = 1") == "f:2: \"a\" already has a value; it cannot be a table as well");
  CHECK(message("a.b = 1\na = 1") == "f:2: \"a\" is a table; it cannot have a value as well");
  CHECK(message("[!]") == "f:1: found \"!]\"; expected a key such as store");
  CHECK(message("a = \"x") == "f:1: the text has no end; expected \"");
  CHECK(message("a = \"\\x\"").find("f:1: found \"\\x\"\" in a text; for a plain backslash") == 0);
  CHECK(message("a = \"\\ud800\"").find("in a text") != std::string::npos);
  CHECK(message("a = 'x' y") == "f:1: found \"y\"; expected the end of the line");
  CHECK(message("a 1") == "f:1: found \"1\"; expected = after the key");
  CHECK(message("a = [1]").find("found a list") != std::string::npos);
  CHECK(message("a = {b = 1}").find("found a table in braces") != std::string::npos);
  CHECK(message("[[a]]").find("a list of tables") != std::string::npos);
  CHECK(message("a = '''x'''").find("over several lines") != std::string::npos);
  for (const char* word : {"1979-05-27", "00",    "1_",   "_1",   "1__0", "0x",   "0x-1",
                           "--1",        "1.",    ".5",   "1._5", "1e",   "01.5", "9223372036854775808",
                           "True",       "yes",   "ä",    "1_e5", "1e_5", "0_1",  "0_1.5",
                           "1.e5",       "1e5.5", "0x_1", "0x1.5"})
    CHECK_MESSAGE(message(std::string("a = ") + word).find("f:1: found ") == 0, word);
}

TEST_CASE("files made to hurt are refused") {
  CHECK(message(std::string(kMaxConfigBytes + 1, ' ')).find("expected a settings file") != std::string::npos);
  std::string deep = "a";
  for (int level = 0; level < 20'000; ++level) deep += ".a";
  CHECK(message(deep + " = 1").find("nested too deeply") != std::string::npos);
  CHECK(message("a = " + std::string(5000, '[')).find("found a list") != std::string::npos);
  CHECK(message("a = 'x\x1b'") == "f:1: found a control character; expected text");
  CHECK(message("\n# \xff") == "f:2: found bytes that are not UTF-8");
  CHECK(message("a = 1\rb = 2") == "f:1: found a control character; expected text");
  CHECK(message(std::string("a\0b", 3)).find("control character") != std::string::npos);
}

}  // namespace
}  // namespace lmemo::cli
