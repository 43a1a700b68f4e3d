#include "tokenizer/json_reader.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <string>

#include "tokenizer/tokenizer_document.h"

namespace lmemo::tokenizer {
namespace {

// What the reader makes of a text, as a tree: "problem" if it refuses.
std::string reading_of(const std::string& text) {
  const auto document = TokenizerDocument::read(text);
  return document.ok() ? document->tree.dump() : "problem";
}

std::string nlohmanns_reading_of(const std::string& text) {
  const auto tree = nlohmann::json::parse(text, nullptr, false);
  return tree.is_discarded() ? "problem" : tree.dump();
}

}  // namespace

TEST_CASE("what JSON is, and what it is not") {
  for (const char* text :
       {"{}", "[]", " [ ] ", "[1,2]", "[1 , -2 ,\t3.5e1\r\n]", R"({"a":{"b":[null,true,false]}})", "\"x\"",
        "0", "-0", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "1e2", "1E+2",
        "0.25", "[[[]]]", R"("\u00e9\ud83d\ude00\n\/\\\"\b\f\r\t")", "\"\xC3\xA9\"", R"({"a":1,"b":2})",
        "\"\x7F\"",
        // and what is none:
        "", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}",
        "{1:1}", "01", "-", "+1", ".5", "1.", "1e", "1e+", "--1", "0x1", "nul", "nulll", "True", "NaN",
        "[1]]", "{}{}", "\"", "\"\\", "\"\\u12\"", "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"",
        "\"\\ud800\\u0041\"", "\"\n\"", "\"\xC3\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"",
        "\"\xC0\x80\"", "//x", "[1]//x", "'a'", "[}", "{]", "\"\\u+123\"", "\"\\u 123\"", "\"\\u-123\""}) {
    CAPTURE(text);
    CHECK(reading_of(text) == nlohmanns_reading_of(text));
  }
}

TEST_CASE("a text cut anywhere is refused, not read beyond its end") {
  const std::string text =
      R"({"model":{"type":"BPE","vocab":{"a":0,"\u0120b":1},"merges":["a b",["c","d"]]},"x":[-1.5e3,true,"\ud83d\ude00"]})";
  for (size_t cut = 0; cut < text.size(); ++cut) {
    const std::string shorter = text.substr(0, cut);  // Its end is the end of its memory: ASan watches.
    CHECK_FALSE(TokenizerDocument::read(shorter).ok());
  }
}

TEST_CASE("nothing grows without bounds") {
  CHECK(TokenizerDocument::read(std::string(99, '[') + std::string(99, ']')).ok());
  const auto deep = TokenizerDocument::read(std::string(1'000'000, '['));
  REQUIRE_FALSE(deep.ok());
  CHECK(deep.error().message.find("nested deeper than 100 levels") != std::string::npos);

  std::string many = "[0";
  for (size_t i = 0; i < kMaxJsonValues; ++i) many += ",0";
  const auto crowd = TokenizerDocument::read(many + "]");
  REQUIRE_FALSE(crowd.ok());
  CHECK(crowd.error().message.find("values beside") != std::string::npos);

  const std::string_view huge("", kMaxJsonBytes + 1);  // Never looked at.
  const auto refused = TokenizerDocument::read(huge);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("bytes; expected at most") != std::string::npos);
}

TEST_CASE("numbers are read as serde_json reads them") {
  CHECK(serde_number("-2.5") == -2.5);
  CHECK(serde_number("1e2") == 100.0);
  CHECK(serde_number("0.1") == 0.1);
  CHECK(serde_number("12345678901234567890123") == 12345678901234567890.0 * 1e3);
  CHECK(serde_number("1e-400") == 0.0);
  CHECK(serde_number("0e999999999999") == 0.0);
  // One unit below the nearest value: the seventeen digits do not fit into a double before they are divided.
  CHECK(serde_number("-9.306408882141113") == -(9306408882141113.0 / 1e15));
}

}  // namespace lmemo::tokenizer
