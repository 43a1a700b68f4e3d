#include "tokenizer/reference/regex.h"

#include "support/test_scale.h"
#include "tokenizer/unicode/code_points.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lmemo;
using namespace lmemo::tokenizer;

namespace {

constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> found(std::string_view pattern, std::string_view text) {
  const Result<Regex> regex = Regex::compile(pattern);
  REQUIRE(regex.ok());
  const std::u32string characters = code_points_of(text);
  std::vector<std::string> all;
  for (const Match& match : regex->find_all(characters))
    all.push_back(utf8_of(std::u32string_view(characters).substr(match.begin, match.end - match.begin)));
  return all;
}

std::string refusal_of(std::string_view pattern) {
  const Result<Regex> regex = Regex::compile(pattern);
  return regex.ok() ? "" : regex.error().message;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the first alternative that leads to a match wins") {
  CHECK(found("a|ab", "ab") == Texts{"a"});
  CHECK(found("(?:a|ab)c", "abc") == Texts{"abc"});
  CHECK(found("a+?b|a+", "aaab aa") == Texts{"aaab", "aa"});
}

TEST_CASE("a run of blanks gives its last one back if something follows") {
  CHECK(found(R"(\s+(?!\S)|\s+|\S+)", "a   b  ") == Texts{"a", "  ", " ", "b", "  "});
}

TEST_CASE("repeats behind a count mean what Oniguruma means") {
  CHECK(found("a{2}?b", "aab b") == Texts{"aab", "b"});  // (?:a{2})?b
  CHECK(found("a{1,2}+", "aaaaa") == Texts{"aaaaa"});    // (?:a{1,2})+
  CHECK(found("a++ab|a", "aab") == Texts{"a", "a"});     // Possessive.
}

TEST_CASE("what is not known is refused with its name and position") {
  CHECK(refusal_of(R"((a)\1)") == R"(regex: this escape is not supported, at character 3: '\1')");
  CHECK(refusal_of(R"(x\p{Klingon})") ==
        R"(regex: the property 'Klingon' is not supported, at character 1: '\p{Klingon}')");
  CHECK(refusal_of("(?<name>a)") ==
        "regex: this kind of group is not supported, at character 0: '(?<name>a)'");
  for (const char* pattern :
       {"(a",        "a)",       "*a",      "a**",     "[a",    "[]",    "[[:alpha:]]", "a{2",
        "a{3,2}",    "a{2000}",  "(?:a*)*", "^*",      "\\",    "(?i)a", "(?i:é)",      "(?i:ss)",
        "(?i:[^a])", "(?<=a+)b", "\\K",     "[a-\\d]", "[z-a]", "\\xff", "\\u{61}"}) {
    CAPTURE(pattern);
    CHECK_FALSE(refusal_of(pattern).empty());
  }
  CHECK_FALSE(refusal_of(std::string(1000, '(')).empty());
  CHECK_FALSE(refusal_of("(?:(?:(?:ab){1000}){1000}){1000}").empty());
}

TEST_CASE("long runs cost neither stack nor quadratic time") {
  const auto length = static_cast<size_t>(test::scaled(300'000));
  for (const char* run : {"a", "A", " ", "\n", "!", "1", "漢", "\u0301"}) {
    std::string text;
    for (size_t at = 0; at < length; ++at) text += run;
    size_t bytes = 0;
    for (const std::string& match : found(kO200k, text + "x")) bytes += match.size();
    CHECK(bytes == text.size() + 1);
  }
}

TEST_CASE("an exponential pattern ends") {
  CHECK(found("(?:a{1,2})+b", std::string(60, 'a')).empty());
  CHECK(found("(?:a|aa)+b|c", std::string(60, 'a') + "c") == Texts{"c"});
}
