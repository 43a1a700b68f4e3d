#include "tokenizer/fast/long_piece_table.h"

#include <bit>

#include "tokenizer/lazy_memory.h"

namespace lmemo::tokenizer {
namespace {

// Requires: at least eight bytes.
uint64_t hash_of(std::string_view piece) {
  uint64_t hash = piece.size() * 0x9E3779B97F4A7C15;
  const auto mix = [&](const char* at) {
    uint64_t bytes;
    std::memcpy(&bytes, at, 8);
    hash = std::rotl((hash ^ bytes) * 0xD6E8FEB86659FD93, 29);
  };
  for (size_t at = 0; at + 8 <= piece.size(); at += 8) mix(piece.data() + at);
  mix(piece.data() + piece.size() - 8);
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15;
  return hash | 2;  // Neither kFree nor kBeingWritten.
}

}  // namespace

LongPieceTable::LongPieceTable(unsigned log2_entries)
    : mask_((size_t{1} << log2_entries) - 1), arena_capacity_((mask_ + 1) * kArenaBytes) {
  entries_ = static_cast<Entry*>(lazy_memory(all_bytes()));
  arena_ = reinterpret_cast<std::byte*>(entries_ + mask_ + 1);
}

LongPieceTable::~LongPieceTable() { ::munmap(entries_, all_bytes()); }

// In one piece, for huge pages: the entries alone are too few, and every small page would cost a fault.
size_t LongPieceTable::all_bytes() const {
  const size_t bytes = (mask_ + 1) * sizeof(Entry) + arena_capacity_;
  return bytes < kHugePage ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

bool LongPieceTable::is_piece(uint64_t start, std::string_view piece) const {
  Counts counts;
  std::memcpy(&counts, arena_ + start, sizeof counts);
  return counts.bytes == piece.size() &&
         std::memcmp(arena_ + start + sizeof counts + counts.ids * sizeof(uint32_t), piece.data(),
                     piece.size()) == 0;
}

uint32_t* LongPieceTable::copy_ids(std::string_view piece, uint32_t* out) const {
  const uint64_t hash = hash_of(piece);
  size_t place = (hash >> 20) & mask_;
  for (size_t probe = 0; probe < kMaxProbes; ++probe, place = (place + 1) & mask_) {
    const uint64_t found = entries_[place].hash.load(std::memory_order_acquire);
    if (found == kFree) return nullptr;
    if (found != hash) continue;
    const uint64_t start = entries_[place].start.load(std::memory_order_relaxed);
    if (!is_piece(start, piece)) continue;
    Counts counts;
    std::memcpy(&counts, arena_ + start, sizeof counts);
    std::memcpy(out, arena_ + start + sizeof counts, counts.ids * sizeof(uint32_t));
    return out + counts.ids;
  }
  return nullptr;
}

void LongPieceTable::put(std::string_view piece, std::span<const uint32_t> ids) {
  const uint64_t hash = hash_of(piece);
  size_t place = (hash >> 20) & mask_;
  for (size_t probe = 0; probe < kMaxProbes; ++probe, place = (place + 1) & mask_) {
    uint64_t found = entries_[place].hash.load(std::memory_order_acquire);
    if (found == hash && is_piece(entries_[place].start.load(std::memory_order_relaxed), piece)) return;
    if (found != kFree) continue;

    const Counts counts{static_cast<uint32_t>(piece.size()), static_cast<uint32_t>(ids.size())};
    const size_t size = (sizeof counts + ids.size_bytes() + piece.size() + 7) / 8 * 8;
    if (arena_used_.load(std::memory_order_relaxed) + size > arena_capacity_) return;
    const uint64_t start = arena_used_.fetch_add(size, std::memory_order_relaxed);
    if (start + size > arena_capacity_) return;
    std::memcpy(arena_ + start, &counts, sizeof counts);
    std::memcpy(arena_ + start + sizeof counts, ids.data(), ids.size_bytes());
    std::memcpy(arena_ + start + sizeof counts + ids.size_bytes(), piece.data(), piece.size());
    // Another thread may have taken the place meanwhile: then this piece has to wait for its next time.
    if (!entries_[place].hash.compare_exchange_strong(found, kBeingWritten, std::memory_order_relaxed))
      return;
    entries_[place].start.store(start, std::memory_order_relaxed);
    entries_[place].hash.store(hash, std::memory_order_release);
    return;
  }
}

}  // namespace lmemo::tokenizer
