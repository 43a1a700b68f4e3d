// Which two tokens merge, to what, and when.
//
// Merges lie together by the two bytes that meet at their border: while a text is merged these stay the same at each
// place, so that all questions about one border look at the same few lines of memory, and those about common borders
// at lines that are near. (One large hash table would make every question wait for memory.)
// An answer is one line of four merges, compared at once and without a branch: who asks about several pieces in turn
// waits for their lines together.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tokenizer/flat_table.h"
#include "tokenizer/lazy_memory.h"

namespace lmemo::tokenizer {

class MergeTable {
 public:
  static constexpr uint32_t kNever = uint32_t{1} << 26;  // No rank; nor is any that is higher.

  struct Merge {
    uint32_t left, right, id;
    uint32_t rank;  // The lowest first, of equal ones the leftmost.
  };
  struct EndBytes {
    unsigned char first, last;
  };
  // What is known of two tokens that meet with these two bytes.
  struct Border {
    uint32_t first_line = 0, line_count = 0;   // None: the first line of all, which is empty.
    uint32_t byte_rank = kNever, byte_id = 0;  // Of the merge, if the two bytes are all there is.
  };
  struct Found {
    uint32_t rank, id;  // From kNever on: there is no such merge.
  };

  MergeTable() = default;
  // Each pair once, ranks below kNever, ids below 2^31. `ends` are the first and the last byte of each token, by id; of
  // a merge of two single bytes (`is_byte` by id) the border itself knows.
  MergeTable(std::span<const Merge> merges, std::span<const EndBytes> ends, const std::vector<bool>& is_byte);

  const Border& border(char before, char after) const {
    return borders_[static_cast<size_t>(static_cast<unsigned char>(before)) << 8 |
                    static_cast<unsigned char>(after)];
  }

  // The merge of the two tokens. Requires: they meet at this border.
  Found find(uint32_t left, uint32_t right, const Border& border) const {
    return find_from(line_of(left, right, border), left, right, border);
  }

  // The same in two steps, of which the first brings the line near.
  uint32_t prefetch(uint32_t left, uint32_t right, const Border& border) const {
    const uint32_t number = line_of(left, right, border);
    __builtin_prefetch(&lines_[number]);
    return number;
  }
  Found find_from(uint32_t number, uint32_t left, uint32_t right, const Border& border) const {
    for (;; number = next_line(number, border)) {
      const Line& line = lines_[number];
      const unsigned matches = line.matches(left, right);
      const uint32_t is_last = ~line.id[kMerges - 1] & kSpilled;
      if ((matches | is_last) != 0) [[likely]] {
        const auto place = static_cast<size_t>(std::countr_zero(matches | 1u << (kMerges - 1)));
        return {line.rank[place] | (matches == 0 ? kNever : 0), line.id[place] & ~kSpilled};
      }
    }
  }

 private:
  static constexpr size_t kMerges = 4;
  static constexpr uint32_t kNoToken = ~uint32_t{0};
  static constexpr uint32_t kSpilled = uint32_t{1} << 31;  // In the last id of a line: the next line goes on.

  struct alignas(64) Line {
    uint32_t left[kMerges] = {kNoToken, kNoToken, kNoToken, kNoToken};
    uint32_t right[kMerges] = {kNoToken, kNoToken, kNoToken, kNoToken};
    uint32_t rank[kMerges] = {kNever, kNever, kNever, kNever};
    uint32_t id[kMerges] = {};

    // A bit for each place that has this pair: one at most.
    unsigned matches(uint32_t left_token, uint32_t right_token) const {
#if defined(__SSE2__)
      const auto equal = [](const uint32_t* numbers, uint32_t number) {
        return _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(numbers)),
                               _mm_set1_epi32(static_cast<int>(number)));
      };
      const __m128i both = _mm_and_si128(equal(left, left_token), equal(right, right_token));
      return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(both)));
#else
      unsigned found = 0;
      for (size_t i = 0; i < kMerges; ++i)
        found |= static_cast<unsigned>((left[i] == left_token) & (right[i] == right_token)) << i;
      return found;
#endif
    }
  };

  uint32_t line_of(uint32_t left, uint32_t right, const Border& border) const {
    const uint64_t hash = (uint64_t{left} << 32 | right) * multiplier_ >> 32;
    return border.first_line + static_cast<uint32_t>(hash * border.line_count >> 32);
  }
  static uint32_t next_line(uint32_t line, const Border& border) {
    return line + 1 == border.first_line + border.line_count ? border.first_line : line + 1;
  }

  uint64_t multiplier_ = hash_seed() | 1;
  TableVector<Border> borders_ = TableVector<Border>(65536);
  // Of each border a hash table of lines, with room in them.
  TableVector<Line> lines_ = TableVector<Line>(1);
};

}  // namespace lmemo::tokenizer
