#include "base/utf8.h"

#include <doctest/doctest.h>

namespace lmemo {
namespace {

TEST_CASE("every character survives a trip, and nothing else is well-formed") {
  for (uint32_t code_point = 0; code_point < 0x120000; ++code_point) {
    std::string text;
    const bool is_character = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    REQUIRE(append_utf8(text, code_point) == is_character);
    if (is_character) REQUIRE(utf8_length(text + "x") == text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) REQUIRE(utf8_length(text.substr(0, cut)) == 0);
  }
  CHECK(utf8_length("") == 0);
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82("})
    CHECK(utf8_length(bad) == 0);
}

}  // namespace
}  // namespace lmemo
