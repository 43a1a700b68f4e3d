// One piece of a split pattern at a time, for any text: plain and exact. Also the kernel shared by the AVX2 splitter.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/fast/split_pattern.h"

namespace lmemo::tokenizer {

enum CharClass : uint8_t {
  kLetterClass = 1,
  kNumberClass = 2,
  kSpaceClass = 4,
  kNewlineClass = 8,  // Also a space.
  kUpperClass = 16,   // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kLowerClass = 32,   // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
};

class CharClasses : public CodePointTable<uint8_t> {
 public:
  // Shared by all splitters of the process.
  static const CharClasses& get(bool marks_are_letters);

 private:
  explicit CharClasses(bool marks_are_letters);
};

class SplitWalker {
 public:
  explicit SplitWalker(const SplitRules& rules)
      : rules_(rules), classes_(CharClasses::get(rules.marks_are_letters)) {}

  // Where the piece that begins at `at` ends. Requires: at < end.
  const char* piece_end(const char* at, const char* end) const;

  // The number of bytes behind an apostrophe that make a contraction, or 0.
  size_t contraction(const char* at, const char* end) const;

  // Classes of the character at `at`, and its length.
  uint8_t class_of(const char* at, size_t& byte_count) const { return classes_.at(at, byte_count); }

  const SplitRules& rules() const { return rules_; }

 private:
  const char* run_end(const char* at, const char* end, uint8_t classes) const;
  const char* symbols_end(const char* at, const char* end) const;
  const char* word_end(const char* at, const char* end, uint8_t first_class, size_t first_bytes) const;
  const char* cased_word_end(const char* at, const char* end, uint8_t first_class, size_t first_bytes) const;
  const char* lower_word_end(const char* at, const char* end) const;
  const char* upper_word_end(const char* at, const char* end) const;
  const char* number_end(const char* at, const char* end) const;
  const char* space_end(const char* at, const char* end) const;

  const SplitRules rules_;
  const CharClasses& classes_;
};

// Adds the piece [at, piece_end) or, if `borders` are given, its parts; returns how many. None if they do not fit and
// this is not the first piece. Requires: a capacity of at least one.
size_t add_pieces(const char* begin, const char* at, const char* piece_end, const CharBorders* borders,
                  PieceSpan* pieces, size_t capacity, bool is_first);

// Whether it is worth looking for borders inside the piece: it is long, or its characters are.
inline bool is_worth_cutting(const char* at, const char* piece_end) {
  return piece_end - at > 15 || (piece_end - at > 4 && (static_cast<unsigned char>(at[0]) >= 0xE0 ||
                                                        static_cast<unsigned char>(at[1]) >= 0xE0));
}

// PieceSplitter::split() by a walker that only tells where a piece ends.
template <typename Walker>
size_t split_by(const Walker& walker, const CharBorders* borders, const char* begin, const char* end,
                PieceSpan* pieces, size_t capacity, const char*& next) {
  size_t count = 0;
  for (next = begin; next < end && count < capacity;) {
    const char* const piece_end = walker.piece_end(next, end);
    const CharBorders* const inside = is_worth_cutting(next, piece_end) ? borders : nullptr;
    const size_t added =
        add_pieces(begin, next, piece_end, inside, pieces + count, capacity - count, count == 0);
    if (added == 0) break;
    count += added;
    next = piece_end;
  }
  return count;
}

#if defined(__x86_64__)
std::unique_ptr<PieceSplitter> make_avx2_splitter(const SplitRules& rules,
                                                  std::shared_ptr<const CharBorders> borders);
#endif

}  // namespace lmemo::tokenizer
