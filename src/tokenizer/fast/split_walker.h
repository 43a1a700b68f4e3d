// One piece of a split pattern at a time, for any text: plain and exact. Also the kernel shared by the AVX2 splitter.
#pragma once

#include <cstdint>
#include <vector>

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

// Classes of all code points, in blocks of 64 as UTF-8 has them.
class CharClasses {
 public:
  // Shared by all splitters of the process.
  static const CharClasses& get(bool marks_are_letters);

  uint8_t of_ascii(char character) const { return records_[static_cast<unsigned char>(character)]; }

  // The class of the character at `at`, and its length. Requires: well-formed UTF-8.
  uint8_t at(const char* at, size_t& byte_count) const {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
    const uint32_t first = byte(0);
    if (first < 0x80) {
      byte_count = 1;
      return records_[first];
    }
    if (first < 0xE0) {
      byte_count = 2;
      return records_[block_of_[first & 0x1F] * 64 + (byte(1) & 0x3F)];
    }
    if (first < 0xF0) {
      byte_count = 3;
      return records_[block_of_[(first & 0x0F) << 6 | (byte(1) & 0x3F)] * 64 + (byte(2) & 0x3F)];
    }
    byte_count = 4;
    return records_[block_of_[(first & 0x07) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)] * 64 + (byte(3) & 0x3F)];
  }

 private:
  explicit CharClasses(bool marks_are_letters);

  std::vector<uint16_t> block_of_;
  std::vector<uint8_t> records_;  // The first two blocks are ASCII.
};

class SplitWalker {
 public:
  explicit SplitWalker(const SplitRules& rules)
      : rules_(rules), classes_(CharClasses::get(rules.marks_are_letters)) {}

  // Where the piece that begins at `at` ends. Requires: at < end.
  const char* piece_end(const char* at, const char* end) const;

  // The number of bytes behind an apostrophe that make a contraction, or 0.
  size_t contraction(const char* at, const char* end) const;

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

#if defined(__x86_64__)
std::unique_ptr<PieceSplitter> make_avx2_splitter(const SplitRules& rules, std::shared_ptr<const CharBorders> borders);
#endif

}  // namespace lmemo::tokenizer
