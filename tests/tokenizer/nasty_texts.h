// Texts made of what pre-tokenizers, normalizers and byte-level models trip over.
#pragma once

#include <iterator>
#include <random>
#include <string>

namespace lmemo::test {

inline std::string nasty_text(std::mt19937& random, size_t max_bits) {
  // clang-format off
  static constexpr const char* kBits[] = {
      " ",  "  ",   "\n",   "\r\n", "\t",  "a",  "B",  "aB", "Ab",   "'s", "'S",     "'re",   "'LL", "'",
      "''", "1",    "12",   "1234", "!",   "!!", "/",  "//", "é",    "é", "\u0301", "中",    "文字", "ſ",
      "\u2028",     "\u00A0", "\u3000", "\u0085", "١", "😀", "\u200D", "hello", "World", "the", "ing", "    ",
      "<|", "|>",   "_",    ".",    ",",   "-",  "가", "가",  "क्", "ǅ",   "ʰ",      "aaaa",  "=====", "0x",
      "\v", "\f",   "\x1c", "\x7f", "'ll'd", " 's", "\n\n  \n x", ";\n/", "/*\n*/",
      "ò",  "²",    "¼",    "⼠",    "‼",  "▁"};
  // clang-format on
  std::string text;
  for (size_t count = 1 + random() % max_bits; count > 0; --count) text += kBits[random() % std::size(kBits)];
  return text;
}

}  // namespace lmemo::test
