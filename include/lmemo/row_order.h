// The order in which training reads the rows of a chunk set: computed on the fly, so that the state of a reader is a few
// integers, and a place in an epoch means the same row whatever the number of ranks, workers and machines.
//
//   LMEMO_ASSIGN(const RowOrder order, RowOrder::make(rows_of_each_chunk, {.seed = 7}, /*epoch=*/2));
//   order.row_at(0);                         // The row that comes first.
//   order.rows_at(consumed + rank, world_size, rows);  // What this rank reads next.
//
// Ranks share the order like cards: place p of what is left belongs to rank p mod world_size. So after the same number of
// rows on every rank, what was read is exactly a prefix of the order, and any other number of ranks can go on from there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lmemo/result.h"

namespace lmemo {

enum class RowOrderKind {
  sequential,  // As the rows lie.
  windows,     // Blocks in a permutation of the whole set, rows shuffled within windows of many blocks.
  exact,  // One permutation of all rows. Every row costs a block to decompress, unless the set fits the memory.
};

std::string_view name_of(RowOrderKind kind);
Result<RowOrderKind> row_order_kind_of(std::string_view name);

struct RowOrderOptions {
  RowOrderKind kind = RowOrderKind::windows;
  uint64_t seed = 0;
  // Only for windows. A block is `block_rows` neighbouring rows of one chunk (the last may be shorter), best as many as are
  // compressed together. A window is `window_blocks` of them; its rows are dealt from `lanes` piles in turn, each pile
  // being the shuffled rows of some of its blocks. So a rank needs only its share of the blocks if the number of
  // ranks divides `lanes`, and neighbours in the order come from different blocks.
  uint64_t block_rows = 64;
  uint64_t window_blocks = 128;
  uint64_t lanes = 16;

  bool operator==(const RowOrderOptions&) const = default;
};

// The set grew during this epoch, when `consumed` rows of the epoch had been read and it had `chunks_before` chunks. The
// unread rows and the new ones are then interleaved evenly; nothing that was read comes again.
struct RowGrowth {
  uint64_t chunks_before = 0;
  uint64_t consumed = 0;
};

class RowOrder {
 public:
  // `chunk_rows`: the rows of each chunk, in the order of the set. Growths: oldest first.
  // `chunk_starts`: the number of the first of them, if only some of the rows of each chunk are to be read.
  static Result<RowOrder> make(std::span<const uint64_t> chunk_rows, const RowOrderOptions& options,
                               uint64_t epoch, std::span<const RowGrowth> growths = {},
                               std::span<const uint64_t> chunk_starts = {});

  // Requires: place < rows().
  uint64_t row_at(uint64_t place) const;

  // Fills `rows` with what stands at places first, first + stride, …
  // Requires: the last of these places is below rows().
  void rows_at(uint64_t first, uint64_t stride, std::span<uint64_t> rows) const;

  uint64_t rows() const;

 private:
  // Some of the chunks, in an order of their own.
  struct Part {
    uint64_t row_at(uint64_t place) const;
    uint64_t windowed_row_at(uint64_t place) const;
    uint64_t slot_start(uint64_t slot) const;

    RowOrderOptions options;
    uint64_t key = 0;
    uint64_t rows = 0;
    std::vector<uint64_t> chunk_first_row;    // Its number in the set.
    std::vector<uint64_t> chunk_first_place;  // As the rows lie; one more than chunks.

    // Of windows only. A slot is a place in the permutation of blocks.
    struct ShortBlock {
      uint64_t slot;
      uint64_t missing_rows_up_to_here;  // Sum over this and all earlier slots.
    };
    uint64_t blocks = 0;
    std::vector<uint64_t> chunk_first_block;  // One more than chunks.
    std::vector<uint64_t> window_start;       // The first place of each window, and the end.
    std::vector<ShortBlock> short_blocks;     // By slot.
  };
  static Part make_part(std::span<const uint64_t> chunk_rows, std::span<const uint64_t> chunk_starts,
                        uint64_t key, const RowOrderOptions& options);

  uint64_t row_at(uint64_t place, size_t level) const;

  // What level `i` adds: parts_[i] interleaved from place `from` on with the `old_rows` not yet read at that time.
  struct Level {
    uint64_t from = 0;
    uint64_t old_rows = 0;
    uint64_t rows = 0;  // All rows, of this level and those below.
  };
  std::vector<Part> parts_;
  std::vector<Level> levels_;
};

}  // namespace lmemo
