#include "tokenizer/unicode/mappings.h"

#include "tokenizer/unicode/mappings_table.h"
#include "tokenizer/unicode/properties.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lmemo::tokenizer {
namespace {

// Hangul syllables are arithmetic: 19 leading consonants × 21 vowels × 28 endings (the first: none).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kEndings = 0x11A7;
constexpr char32_t kLeadingCount = 19, kVowelCount = 21, kEndingCount = 28;
constexpr char32_t kSyllableCount = kLeadingCount * kVowelCount * kEndingCount;

std::u32string_view look_up(std::span<const MappingEntry> table, std::span<const char32_t> texts,
                            char32_t from) {
  const auto found = std::lower_bound(table.begin(), table.end(), from,
                                      [](const MappingEntry& entry, char32_t c) { return entry.from < c; });
  if (found == table.end() || found->from != from) return {};
  return {texts.data() + found->text_begin, found->text_length};
}

std::optional<char32_t> pair_composed(char32_t first, char32_t second) {
  if (first - kLeading < kLeadingCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kEndingCount;
  const bool is_open_syllable =
      first - kSyllables < kSyllableCount && (first - kSyllables) % kEndingCount == 0;
  if (is_open_syllable && second > kEndings && second < kEndings + kEndingCount)
    return first + (second - kEndings);

  const auto found =
      std::lower_bound(kCompositions.begin(), kCompositions.end(), CompositionPair{first, second, 0},
                       [](const CompositionPair& a, const CompositionPair& b) {
                         return a.first != b.first ? a.first < b.first : a.second < b.second;
                       });
  if (found == kCompositions.end() || found->first != first || found->second != second) return std::nullopt;
  return found->composed;
}

void append_decomposed(std::u32string& out, char32_t c, bool compatible) {
  if (c - kSyllables < kSyllableCount) {
    const char32_t syllable = c - kSyllables;
    out += kLeading + syllable / (kVowelCount * kEndingCount);
    out += kVowels + syllable % (kVowelCount * kEndingCount) / kEndingCount;
    if (syllable % kEndingCount != 0) out += kEndings + syllable % kEndingCount;
    return;
  }
  std::u32string_view parts;
  if (compatible) parts = look_up(kCompatible, kCompatible_texts, c);
  if (parts.empty()) parts = look_up(kCanonical, kCanonical_texts, c);
  if (parts.empty()) {
    out += c;
  } else {
    out += parts;
  }
}

uint8_t combining_class(char32_t c) { return properties_of(c).combining_class; }

// Marks between two starters go into the order of their classes; equal ones keep theirs.
void order_marks(std::span<char32_t> marks) {
  struct Mark {
    uint8_t combining_class;
    size_t place;
    char32_t code_point;
  };
  std::vector<Mark> ordered;
  for (const char32_t c : marks) ordered.push_back({combining_class(c), ordered.size(), c});
  std::sort(ordered.begin(), ordered.end(), [](const Mark& a, const Mark& b) {
    return a.combining_class != b.combining_class ? a.combining_class < b.combining_class : a.place < b.place;
  });
  for (size_t at = 0; at < marks.size(); ++at) marks[at] = ordered[at].code_point;
}

}  // namespace

std::u32string_view lowercase_of(char32_t code_point) {
  return look_up(kLowercase, kLowercase_texts, code_point);
}

std::vector<char32_t> mapped_code_points() {
  std::vector<char32_t> mapped;
  for (const MappingEntry& entry : kLowercase) mapped.push_back(entry.from);
  for (const MappingEntry& entry : kCanonical) mapped.push_back(entry.from);
  for (char32_t c = kSyllables; c < kSyllables + kSyllableCount; ++c) mapped.push_back(c);
  return mapped;
}

std::u32string decomposed(std::u32string_view text, bool compatible) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_decomposed(out, c, compatible);

  for (size_t begin = 0; begin < out.size(); ++begin) {
    size_t end = begin;
    while (end < out.size() && combining_class(out[end]) != 0) ++end;
    if (end - begin > 1) order_marks(std::span(out).subspan(begin, end - begin));
    begin = end;
  }
  return out;
}

std::u32string composed(std::u32string_view decomposed_text) {
  std::u32string out;
  out.reserve(decomposed_text.size());
  std::optional<size_t> starter;  // Its place in `out`.
  int last_class = -1;            // Of what stands behind the starter in `out`; -1 if nothing does.
  for (const char32_t c : decomposed_text) {
    const int this_class = combining_class(c);
    // Blocked: something between has the same class or a higher one, or is a starter itself.
    const bool is_blocked = last_class != -1 && (last_class >= this_class || last_class == 0);
    if (starter && !is_blocked) {
      if (const auto both = pair_composed(out[*starter], c)) {
        out[*starter] = *both;
        continue;
      }
    }
    out += c;
    if (this_class == 0) {
      starter = out.size() - 1;
      last_class = -1;
    } else {
      last_class = this_class;
    }
  }
  return out;
}

bool may_change_in_nfc(char32_t code_point) {
  static const std::vector<bool> may_change = [] {
    std::vector<bool> made(0x110000);
    for (const PropertyRange& range : property_ranges())
      if (range.properties.combining_class != 0)
        for (char32_t c = range.first; c <= range.last; ++c) made[c] = true;
    for (const MappingEntry& entry : kCanonical)
      if (composed(decomposed(std::u32string(1, entry.from), false)) != std::u32string(1, entry.from))
        made[entry.from] = true;
    for (const CompositionPair& pair : kCompositions) made[pair.second] = true;
    for (char32_t c = kVowels; c < kVowels + kVowelCount; ++c) made[c] = true;
    for (char32_t c = kEndings + 1; c < kEndings + kEndingCount; ++c) made[c] = true;
    return made;
  }();
  return may_change[code_point];
}

}  // namespace lmemo::tokenizer
