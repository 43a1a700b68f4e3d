// Ids of pieces that are too long for the piece table: indentation, long names, rulers of dashes.
//
// One table serves all threads, as the piece table does: entries are written once, a reader takes no lock, and what
// finds no room is not remembered.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lmemo::tokenizer {

class LongPieceTable {
 public:
  static constexpr size_t kMinBytes = 16;
  static constexpr size_t kMaxBytes = 64;

  static bool takes(std::string_view piece) { return takes(piece.size()); }
  static bool takes(size_t byte_count) { return byte_count >= kMinBytes && byte_count <= kMaxBytes; }

  // Memory: 16 bytes an entry, and kArenaBytes an entry for pieces and ids, as far as it is used.
  explicit LongPieceTable(unsigned log2_entries);
  ~LongPieceTable();
  LongPieceTable(const LongPieceTable&) = delete;
  LongPieceTable& operator=(const LongPieceTable&) = delete;

  // Brings the memory that the first pieces will need, so that no text waits for it: all entries, if pages are large.
  void warm_up() { entries_[0].hash.store(kFree, std::memory_order_relaxed); }

  // Writes the ids of the piece and returns where they end, or null if it is not known. Requires: takes(piece), and
  // room for as many ids as it has bytes.
  uint32_t* copy_ids(std::string_view piece, uint32_t* out) const;

  // Calls visit(piece, ids) for every piece that is known now.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t place = 0; place <= mask_; ++place) {
      const uint64_t hash = entries_[place].hash.load(std::memory_order_acquire);
      if (hash == kFree || hash == kBeingWritten) continue;
      const std::byte* const record = arena_ + entries_[place].start.load(std::memory_order_relaxed);
      Counts counts;
      std::memcpy(&counts, record, sizeof counts);
      const auto* const ids = reinterpret_cast<const uint32_t*>(record + sizeof counts);
      visit(std::string_view(reinterpret_cast<const char*>(ids + counts.ids), counts.bytes),
            std::span<const uint32_t>(ids, counts.ids));
    }
  }

  // Remembers the ids, if there is room. Requires: takes(piece), no more ids than bytes.
  void put(std::string_view piece, std::span<const uint32_t> ids);

 private:
  static constexpr size_t kMaxProbes = 8;
  static constexpr size_t kArenaBytes = 96;
  static constexpr uint64_t kFree = 0, kBeingWritten = 1;

  struct Counts {
    uint32_t bytes, ids;
  };
  struct Entry {
    std::atomic<uint64_t> hash;   // Or kFree, kBeingWritten.
    std::atomic<uint64_t> start;  // In the arena: number of bytes, number of ids (u32 each), ids, bytes.
  };

  size_t all_bytes() const;
  bool is_piece(uint64_t start, std::string_view piece) const;

  const size_t mask_;
  const size_t arena_capacity_;
  Entry* entries_;
  std::byte*
      arena_;  // Behind the entries. What an entry points to is written before the entry, and never again.
  // In a cache line of its own: all threads read the others at every look, while one writes this.
  alignas(64) std::atomic<uint64_t> arena_used_ = 0;
};

}  // namespace lmemo::tokenizer
