// Ids of pieces that were met before: short pieces (up to kMaxKeyBytes) to their ids, in one cache line.
//
// One table serves all threads of a tokenizer. Entries are written once and never change or go: a reader takes no
// lock, a writer claims a free entry with one compare-and-swap. The size is fixed; when the places for a piece are
// taken it is not remembered.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace lmemo::tokenizer {

class PieceTable {
 public:
  static constexpr size_t kMaxKeyBytes = 15;
  static constexpr size_t kMaxIds = kMaxKeyBytes;  // A piece has no more ids than bytes.

  // The bytes of a piece, zeros, and its length in the highest byte: two equal keys are two equal pieces.
  struct Key {
    uint64_t low, high;

    uint64_t hash() const {
      const auto product =
          static_cast<unsigned __int128>(low ^ 0x9E3779B97F4A7C15) * (high ^ 0xD6E8FEB86659FD93);
      return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    // Whether key_of gives such keys.
    bool is_sound() const {
      const size_t byte_count = high >> 56;
      return byte_count >= 1 && byte_count <= kMaxKeyBytes && (low & ~kMasks[byte_count][0]) == 0 &&
             (high << 8 >> 8 & ~kMasks[byte_count][1]) == 0;
    }
  };

  // Requires: 1 to kMaxKeyBytes bytes, and 16 readable bytes from `piece` on.
  static Key key_of(const char* piece, size_t byte_count) {
    Key key;
    std::memcpy(&key.low, piece, 8);
    std::memcpy(&key.high, piece + 8, 8);
    key.low &= kMasks[byte_count][0];
    key.high = (key.high & kMasks[byte_count][1]) | uint64_t{byte_count} << 56;
    return key;
  }
  static Key key_of(std::string_view piece) {
    char bytes[16] = {};
    std::memcpy(bytes, piece.data(), piece.size());
    return key_of(bytes, piece.size());
  }

  // Room for 2^log2_entries pieces, 32 bytes each, and half as many ids of pieces that have more than three.
  explicit PieceTable(unsigned log2_entries);
  ~PieceTable();
  PieceTable(const PieceTable&) = delete;
  PieceTable& operator=(const PieceTable&) = delete;

  // Brings the memory that the first further ids will need, so that no text waits for it.
  void warm_up() { more_ids_[0] = 0; }

  void prefetch(uint64_t hash) const { __builtin_prefetch(&entries_[place_of(hash)]); }

  // Writes the ids of the piece and returns where they end, or null if the piece is not known. Ids are written by the
  // four, whatever of them counts. Requires: room for the ids of the piece, and for four more.
  uint32_t* copy_ids(const Key& key, uint64_t hash, uint32_t* out) const {
    size_t place = place_of(hash);
    for (size_t probe = 0; probe < kMaxProbes; ++probe, place = (place + 1) & mask_) {
      const Entry& entry = entries_[place];
      const uint64_t high = entry.key_high.load(std::memory_order_acquire);
      if (high == key.high && entry.key_low.load(std::memory_order_relaxed) == key.low) {
        const uint64_t first = entry.ids_0_1.load(std::memory_order_relaxed);
        const uint64_t second = entry.id_2_count.load(std::memory_order_relaxed);
        const auto count = static_cast<uint32_t>(second >> 32);
        if (count <= kInlineIds) [[likely]] {
          std::memcpy(out, &first, 8);
          std::memcpy(out + 2, &second, 8);
        } else {
          for (uint32_t i = 0; i < count; i += kIdsAtOnce)
            std::memcpy(out + i, more_ids_ + first + i, kIdsAtOnce * sizeof(uint32_t));
        }
        return out + count;
      }
      if (high == 0) return nullptr;
    }
    return nullptr;
  }

  // Calls visit(key, ids) for every piece that is known now.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t place = 0; place <= mask_; ++place) {
      const uint64_t high = entries_[place].key_high.load(std::memory_order_acquire);
      if (high == 0 || high == kBeingWritten) continue;
      const Key key{entries_[place].key_low.load(std::memory_order_relaxed), high};
      uint32_t ids[kMaxIds + 4];
      const uint32_t* const end = copy_ids(key, key.hash(), ids);
      if (end) visit(key, std::span<const uint32_t>(ids, static_cast<size_t>(end - ids)));
    }
  }

  // Remembers the ids of a piece, if there is room. Requires: one to kMaxIds ids.
  void put(const Key& key, uint64_t hash, std::span<const uint32_t> ids);

 private:
  static constexpr size_t kMaxProbes = 8;
  static constexpr uint32_t kInlineIds = 3;
  static constexpr uint32_t kIdsAtOnce = 4;  // More ids than kInlineIds are kept, and copied, by the four.
  static constexpr uint64_t kBeingWritten = ~uint64_t{0};  // No key: its length would be 255.
  static const uint64_t kMasks[16][2];

  struct Entry {
    std::atomic<uint64_t> key_high;  // 0: free.
    std::atomic<uint64_t> key_low;
    std::atomic<uint64_t> ids_0_1;     // Or, for more than kInlineIds, where they begin in more_ids_.
    std::atomic<uint64_t> id_2_count;  // The number of ids is the high half.
  };
  static_assert(sizeof(Entry) == 32);

  size_t place_of(uint64_t hash) const { return hash >> shift_; }

  size_t mask_;
  unsigned shift_;
  Entry* entries_;
  uint32_t* more_ids_;
  size_t more_capacity_;
  // In a cache line of its own: all threads read the others at every look, while one writes this.
  alignas(64) std::atomic<size_t> more_used_ = 0;
};

}  // namespace lmemo::tokenizer
