#include "tokenizer/fast/piece_table.h"

#include "tokenizer/lazy_memory.h"

namespace lmemo::tokenizer {
namespace {

constexpr uint64_t low_bytes(size_t count) {
  return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * count) - 1;
}

}  // namespace

#define LMEMO_MASK(n) {low_bytes(n), (n) <= 8 ? 0 : low_bytes((n) - 8)}
const uint64_t PieceTable::kMasks[16][2] = {LMEMO_MASK(0),  LMEMO_MASK(1),  LMEMO_MASK(2),  LMEMO_MASK(3),
                                            LMEMO_MASK(4),  LMEMO_MASK(5),  LMEMO_MASK(6),  LMEMO_MASK(7),
                                            LMEMO_MASK(8),  LMEMO_MASK(9),  LMEMO_MASK(10), LMEMO_MASK(11),
                                            LMEMO_MASK(12), LMEMO_MASK(13), LMEMO_MASK(14), LMEMO_MASK(15)};
#undef LMEMO_MASK

PieceTable::PieceTable(unsigned log2_entries)
    : mask_((size_t{1} << log2_entries) - 1), shift_(64 - log2_entries), more_capacity_(mask_ + 1) {
  entries_ = static_cast<Entry*>(lazy_memory((mask_ + 1) * sizeof(Entry)));
  more_ids_ = static_cast<uint32_t*>(lazy_memory(more_capacity_ * sizeof(uint32_t)));
}

PieceTable::~PieceTable() {
  ::munmap(entries_, (mask_ + 1) * sizeof(Entry));
  ::munmap(more_ids_, more_capacity_ * sizeof(uint32_t));
}

void PieceTable::put(const Key& key, uint64_t hash, std::span<const uint32_t> ids) {
  size_t place = place_of(hash);
  for (size_t probe = 0; probe < kMaxProbes; ++probe, place = (place + 1) & mask_) {
    Entry& entry = entries_[place];
    uint64_t high = entry.key_high.load(std::memory_order_acquire);
    if (high == key.high && entry.key_low.load(std::memory_order_relaxed) == key.low) return;
    if (high != 0) continue;

    uint64_t first = 0;
    uint64_t second = uint64_t{ids.size()} << 32;
    if (ids.size() <= kInlineIds) {
      first = ids[0] | uint64_t{ids.size() > 1 ? ids[1] : 0} << 32;
      second |= ids.size() > 2 ? ids[2] : 0;
    } else {
      const size_t size = (ids.size() + kIdsAtOnce - 1) / kIdsAtOnce * kIdsAtOnce;
      if (more_used_.load(std::memory_order_relaxed) >= more_capacity_) return;
      first = more_used_.fetch_add(size, std::memory_order_relaxed);
      if (first + size > more_capacity_) return;
      std::memcpy(more_ids_ + first, ids.data(), ids.size_bytes());
    }
    // Another thread may have taken the place meanwhile: then this piece has to wait for its next time.
    if (!entry.key_high.compare_exchange_strong(high, kBeingWritten, std::memory_order_relaxed)) return;
    entry.key_low.store(key.low, std::memory_order_relaxed);
    entry.ids_0_1.store(first, std::memory_order_relaxed);
    entry.id_2_count.store(second, std::memory_order_relaxed);
    entry.key_high.store(key.high, std::memory_order_release);
    return;
  }
}

}  // namespace lmemo::tokenizer
