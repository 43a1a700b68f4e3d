// What HuggingFace believes about a code point. It uses several Unicode versions at once (split regexes 16.0, normal
// forms 9.0, BERT classes 8.0, Rust's own character methods 17.0), so each question has its own answer here, found by
// asking HF about every code point (tools/make_unicode_tables.py) and compared again by python/tests/unicode_tables_test.py.
#pragma once

#include <cstdint>
#include <vector>

namespace lmemo::tokenizer {

// Order and values are the generator's: tools/unicode_probe.py, CATEGORIES.
enum class Category : uint8_t {
  cn,
  lu,
  ll,
  lt,
  lm,
  lo,
  mn,
  mc,
  me,
  nd,
  nl,
  no,
  pc,
  pd,
  ps,
  pe,
  pi,
  pf,
  po,
  sm,
  sc,
  sk,
  so,
  zs,
  zl,
  zp,
  cc,
  cf,
  cs,
  co,
};

// Order and values are the generator's: GRAPHEMES.
enum class Grapheme : uint8_t {
  other,
  cr,
  lf,
  control,
  joins,
  zwj,
  prepend,
  pictograph,
  hangul_l,
  hangul_v,
  hangul_t,
  hangul_lv,
  hangul_lvt,
};

// Order and values are the generator's: FLAGS.
enum CharacterFlag : uint16_t {
  kRegexSpace = 1 << 0,   // \s of Split.
  kRegexWord = 1 << 1,    // \w of Split.
  kWord = 1 << 2,         // \w of the Whitespace pre-tokenizer, which has another regex engine.
  kWordSpace = 1 << 3,    // Its \s.
  kSpace = 1 << 4,        // WhitespaceSplit, Strip, BertPreTokenizer.
  kNumeric = 1 << 5,      // Digits.
  kPunctuation = 1 << 6,  // Punctuation, BertPreTokenizer.
  kBertRemoved = 1 << 7,  // Dropped by clean_text.
  kBertBlank = 1 << 8,    // A space after clean_text.
  kBertChinese = 1 << 9,  // Set apart by handle_chinese_chars.
  kBertAccent = 1 << 10,  // Dropped by strip_accents of BertNormalizer, after NFD.
  kAccent = 1 << 11,      // Dropped by StripAccents.
  kNmtRemoved = 1 << 12,
  kNmtBlank = 1 << 13,
};

struct CharacterProperties {
  uint8_t category;         // Category, of the split regexes.
  uint8_t combining_class;  // Canonical, of the normal forms.
  uint8_t grapheme;         // Grapheme, of Precompiled.
  uint8_t regex_script;     // Of the split regexes: 1 + the place in kRegexScripts, or 0.
  uint8_t script;           // Of UnicodeScripts: equal numbers are equal scripts, 0 never cuts.
  uint16_t flags;           // CharacterFlag.
};

// Requires: code_point ≤ U+10FFFF. A surrogate has the properties of its neighbour below; text never holds one.
const CharacterProperties& properties_of(char32_t code_point);

// All of them in order, as ranges that share their properties.
struct PropertyRange {
  char32_t first, last;
  const CharacterProperties& properties;
};
std::vector<PropertyRange> property_ranges();

inline bool has_flag(char32_t code_point, CharacterFlag flag) {
  return (properties_of(code_point).flags & flag) != 0;
}
inline Category category_of(char32_t code_point) {
  return static_cast<Category>(properties_of(code_point).category);
}
inline Grapheme grapheme_of(char32_t code_point) {
  return static_cast<Grapheme>(properties_of(code_point).grapheme);
}

}  // namespace lmemo::tokenizer
