// Which two tokens merge, to what, and when.
//
// Merges lie together by the two bytes that meet at their border: while a text is merged these stay the same at each
// place, so that all questions about one border look at the same few lines of memory, and those about common borders
// at lines that are near. (One large hash table would make every question wait for memory.)
#pragma once

#include <cstdint>
#include <span>

#include "tokenizer/flat_table.h"
#include "tokenizer/lazy_memory.h"

namespace lmemo::tokenizer {

class MergeTable {
 public:
  static constexpr uint32_t kNever = ~uint32_t{0};  // No rank.

  struct Merge {
    uint32_t left, right, id;
    uint32_t rank;  // The lowest first, of equal ones the leftmost.
  };
  struct EndBytes {
    unsigned char first, last;
  };
  // What is known of two tokens that meet with these two bytes.
  struct Border {
    uint32_t start = 0, slot_count = 0;
    uint32_t byte_rank = kNever, byte_id = 0;  // Of the merge, if the two bytes are all there is.
  };

  MergeTable() = default;
  // Each pair once, ranks below kNever. `ends` are the first and the last byte of each token, by id; of a merge of two
  // single bytes (`is_byte` by id) the border itself knows.
  MergeTable(std::span<const Merge> merges, std::span<const EndBytes> ends, const std::vector<bool>& is_byte);

  const Border& border(char before, char after) const {
    return borders_[static_cast<size_t>(static_cast<unsigned char>(before)) << 8 | static_cast<unsigned char>(after)];
  }

  // The merge of the two tokens, or null. Requires: they meet at this border.
  const Merge* find(uint32_t left, uint32_t right, const Border& border) const {
    if (border.slot_count == 0) return nullptr;
    for (uint32_t slot = first_slot(left, right, border);; slot = next_slot(slot, border)) {
      const Merge& merge = merges_[slot];
      if (merge.left == left && merge.right == right) return &merge;
      if (merge.rank == kNever) return nullptr;
    }
  }

 private:
  uint32_t first_slot(uint32_t left, uint32_t right, const Border& border) const {
    const uint64_t hash = hash_of(uint64_t{left} << 32 | right, seed_);
    return border.start + static_cast<uint32_t>((hash & 0xFFFFFFFF) * border.slot_count >> 32);
  }
  static uint32_t next_slot(uint32_t slot, const Border& border) {
    return slot + 1 == border.start + border.slot_count ? border.start : slot + 1;
  }

  uint64_t seed_ = hash_seed();
  TableVector<Border> borders_ = TableVector<Border>(65536);
  TableVector<Merge> merges_;  // Of each border a hash table, a third of it free (rank kNever).
};

}  // namespace lmemo::tokenizer
