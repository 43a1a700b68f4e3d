#include "tokenizer/fast/split_walker.h"

#include <algorithm>
#include <string>

#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

bool is_mark(Category category) {
  return category == Category::mn || category == Category::mc || category == Category::me;
}

uint8_t class_of(const CharacterProperties& properties, bool marks_are_letters) {
  const auto category = static_cast<Category>(properties.category);
  uint8_t made = 0;
  if (category >= Category::lu && category <= Category::lo) made |= kLetterClass;
  if (category >= Category::nd && category <= Category::no) made |= kNumberClass;
  if (properties.flags & kRegexSpace) made |= kSpaceClass;
  if (is_mark(category)) {
    made |= kUpperClass | kLowerClass;
    if (marks_are_letters) made |= kLetterClass;
  }
  if (category == Category::lm || category == Category::lo) made |= kUpperClass | kLowerClass;
  if (category == Category::lu || category == Category::lt) made |= kUpperClass;
  if (category == Category::ll) made |= kLowerClass;
  return made;
}

std::vector<uint8_t> classes_of_all(bool marks_are_letters) {
  std::vector<uint8_t> all(kCodePoints);
  for (const PropertyRange& range : property_ranges())
    std::fill(all.begin() + range.first, all.begin() + range.last + 1,
              class_of(range.properties, marks_are_letters));
  all['\r'] |= kNewlineClass;
  all['\n'] |= kNewlineClass;
  return all;
}

constexpr std::string_view kLongS = "\xC5\xBF";  // U+017F is an s in another case.

}  // namespace

CharClasses::CharClasses(bool marks_are_letters) : CodePointTable(classes_of_all(marks_are_letters)) {}

const CharClasses& CharClasses::get(bool marks_are_letters) {
  static const CharClasses plain(false);
  static const CharClasses with_marks(true);
  return marks_are_letters ? with_marks : plain;
}

size_t SplitWalker::contraction(const char* at, const char* end) const {
  const size_t left = static_cast<size_t>(end - at);
  if (left == 0) return 0;
  const bool any_case = rules_.contractions != SplitRules::Contractions::lower_case;
  const auto lower = [&](size_t i) {
    return static_cast<char>(any_case && at[i] >= 'A' && at[i] <= 'Z' ? at[i] + 32 : at[i]);
  };
  const char first = lower(0);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 1;
  if (any_case && left >= 2 && std::string_view(at, 2) == kLongS) return 2;
  if (left < 2) return 0;
  const char second = lower(1);
  return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 2 : 0;
}

// As far as every character is of one of the classes.
const char* SplitWalker::run_end(const char* at, const char* end, uint8_t classes) const {
  size_t bytes;
  while (at < end && (classes_.at(at, bytes) & classes)) at += bytes;
  return at;
}

const char* SplitWalker::symbols_end(const char* at, const char* end) const {
  size_t bytes;
  while (at < end && !(classes_.at(at, bytes) & (kLetterClass | kNumberClass | kSpaceClass))) at += bytes;
  if (rules_.symbols_swallow == SplitRules::Swallows::nothing) return at;
  const bool with_slashes = rules_.symbols_swallow == SplitRules::Swallows::newlines_and_slashes;
  while (at < end && (*at == '\r' || *at == '\n' || (with_slashes && *at == '/'))) ++at;
  return at;
}

// [upper]*[lower]+, or null.
const char* SplitWalker::lower_word_end(const char* at, const char* end) const {
  const char* last_both = nullptr;  // Behind the last character that the first part may give back.
  size_t bytes;
  while (at < end) {
    const uint8_t found = classes_.at(at, bytes);
    if (!(found & kUpperClass)) break;
    at += bytes;
    if (found & kLowerClass) last_both = at;
  }
  const char* const lower_end = run_end(at, end, kLowerClass);
  return lower_end > at ? lower_end : last_both;
}

// [upper]+[lower]*, or null.
const char* SplitWalker::upper_word_end(const char* at, const char* end) const {
  const char* const upper_end = run_end(at, end, kUpperClass);
  return upper_end > at ? run_end(upper_end, end, kLowerClass) : nullptr;
}

const char* SplitWalker::cased_word_end(const char* at, const char* end, uint8_t first_class,
                                        size_t first_bytes) const {
  const bool may_prefix = !(first_class & (kLetterClass | kNumberClass | kNewlineClass));
  const char* word_end = may_prefix ? lower_word_end(at + first_bytes, end) : nullptr;
  if (!word_end) word_end = lower_word_end(at, end);
  if (!word_end && may_prefix) word_end = upper_word_end(at + first_bytes, end);
  if (!word_end) word_end = upper_word_end(at, end);
  if (word_end && rules_.contractions == SplitRules::Contractions::at_end && word_end < end &&
      *word_end == '\'')
    if (const size_t bytes = contraction(word_end + 1, end)) word_end += 1 + bytes;
  return word_end;
}

// Null if no word begins here.
const char* SplitWalker::word_end(const char* at, const char* end, uint8_t first_class,
                                  size_t first_bytes) const {
  if (rules_.cut_at_case) return cased_word_end(at, end, first_class, first_bytes);
  if (first_class & kLetterClass) return run_end(at + first_bytes, end, kLetterClass);
  const bool may_prefix =
      rules_.any_prefix ? !(first_class & (kLetterClass | kNumberClass | kNewlineClass)) : *at == ' ';
  if (!may_prefix) return nullptr;
  const char* const word = at + first_bytes;
  const char* const word_end = run_end(word, end, kLetterClass);
  return word_end > word ? word_end : nullptr;
}

const char* SplitWalker::number_end(const char* at, const char* end) const {
  if (rules_.numbers == SplitRules::Numbers::run_behind_space) return run_end(at, end, kNumberClass);
  const size_t max_digits = rules_.numbers == SplitRules::Numbers::single ? 1 : 3;
  size_t bytes;
  for (size_t digits = 0; digits < max_digits && at < end && (classes_.at(at, bytes) & kNumberClass);
       ++digits)
    at += bytes;
  return at;
}

// \s*[\r\n]+ (if newlines end space), then \s+(?!\S), then \s+.
const char* SplitWalker::space_end(const char* at, const char* end) const {
  const char* newline_end = nullptr;
  const char* last = at;
  const char* run = at;
  size_t bytes;
  while (run < end) {
    const uint8_t found = classes_.at(run, bytes);
    if (!(found & kSpaceClass)) break;
    last = run;
    run += bytes;
    if (found & kNewlineClass) newline_end = run;
  }
  if (rules_.newlines_end_space && newline_end) return newline_end;
  if (run == end || last == at) return run;
  return last;
}

const char* SplitWalker::piece_end(const char* at, const char* end) const {
  const bool contracts_first = rules_.contractions == SplitRules::Contractions::lower_case ||
                               rules_.contractions == SplitRules::Contractions::any_case;
  if (*at == '\'' && contracts_first)
    if (const size_t bytes = contraction(at + 1, end)) return at + 1 + bytes;

  size_t first_bytes;
  const uint8_t first_class = classes_.at(at, first_bytes);
  if (const char* const found = word_end(at, end, first_class, first_bytes)) return found;
  if (first_class & kNumberClass) return number_end(at, end);
  if (!(first_class & kSpaceClass)) return symbols_end(at, end);
  if (*at == ' ' && at + 1 < end) {
    size_t bytes;
    const uint8_t next = classes_.at(at + 1, bytes);
    if (rules_.numbers == SplitRules::Numbers::run_behind_space && (next & kNumberClass))
      return number_end(at + 1, end);
    if (!(next & (kLetterClass | kNumberClass | kSpaceClass))) return symbols_end(at + 1, end);
  }
  return space_end(at, end);
}

size_t add_pieces(const char* begin, const char* at, const char* piece_end, const CharBorders* borders,
                  PieceSpan* pieces, size_t capacity, bool is_first) {
  const auto start = static_cast<uint32_t>(at - begin);
  const auto end = static_cast<uint32_t>(piece_end - begin);
  if (borders) {
    size_t count = 0;
    uint32_t part = start;
    const bool is_cut = borders->cut_piece({at, static_cast<size_t>(piece_end - at)}, [&](size_t part_end) {
      if (count + 1 >= capacity) return false;
      pieces[count++] = {part, start + static_cast<uint32_t>(part_end)};
      part = pieces[count - 1].end;
      return true;
    });
    if (is_cut) {
      pieces[count++] = {part, end};
      return count;
    }
    if (count + 1 >= capacity && !is_first)
      return 0;  // Tried again with more room; or so many parts that it stays whole.
  }
  pieces[0] = {start, end};
  return 1;
}

}  // namespace lmemo::tokenizer
