#include "store/directory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

namespace lmemo {
namespace {

// Slot: 24 bits of the digest, 16 bits of segment number + 1, 24 bits of ordinal. Zero: free.
constexpr uint32_t kMaxSegmentNumbers = (1u << 16) - 1;
constexpr uint64_t kMinSlots = 1024;
constexpr uint64_t kMinSegmentNumbers = 64;
// Uniform digests at half load never come near this; a made-up index could otherwise make every probe a walk.
constexpr uint64_t kMaxProbes = 512;

static_assert(kMaxEntriesPerSegment <= (1u << 24));

uint64_t position_of(const Digest& digest, int shift) {
  const uint64_t front = __builtin_bswap64(load_le<uint64_t>(digest.bytes.data()));
  return front >> shift;
}

uint64_t tag_of(const Digest& digest) { return load_le<uint64_t>(digest.bytes.data() + 8) >> 40 << 40; }

uint64_t slot_of(const Digest& digest, uint32_t number, uint32_t ordinal) {
  return tag_of(digest) | (uint64_t{number} + 1) << 24 | ordinal;
}

constexpr uint64_t kTagMask = ~uint64_t{0} << 40;
uint32_t number_in(uint64_t slot) { return static_cast<uint32_t>((slot >> 24) & 0xffff) - 1; }
uint32_t ordinal_in(uint64_t slot) { return static_cast<uint32_t>(slot & 0xffffff); }

struct FreeSlots {
  void operator()(std::atomic<uint64_t>* slots) const { std::free(slots); }
};

// A probe goes anywhere in the table: on huge pages it costs no walk through the page tables.
std::unique_ptr<std::atomic<uint64_t>[], FreeSlots> make_slots(uint64_t count) {
  constexpr size_t kHugePage = 2 << 20;
  const size_t bytes = count * sizeof(std::atomic<uint64_t>);
  void* memory = std::aligned_alloc(bytes >= kHugePage ? kHugePage : 64, bytes);
#if defined(__linux__)
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  auto* slots = static_cast<std::atomic<uint64_t>*>(memory);
  std::uninitialized_value_construct_n(slots, count);
  return std::unique_ptr<std::atomic<uint64_t>[], FreeSlots>(slots);
}

}  // namespace

struct Directory::Table {
  Table(uint64_t slot_count, uint64_t segment_count)
      : shift(64 - std::countr_zero(slot_count)),
        mask(slot_count - 1),
        slots(make_slots(slot_count)),
        segment_capacity(segment_count),
        segments(std::make_unique<std::atomic<Segment*>[]>(segment_count)),
        owners(segment_count) {}

  const int shift;
  const uint64_t mask;
  const std::unique_ptr<std::atomic<uint64_t>[], FreeSlots> slots;
  const uint64_t segment_capacity;
  // A null segment was removed: its slots match nothing. Numbers are not used again within a table.
  const std::unique_ptr<std::atomic<Segment*>[]> segments;
  // Read by readers while segments[n] is not null; changed only after they left.
  std::vector<std::shared_ptr<Segment>> owners;
  uint64_t used_slots = 0;
  uint32_t used_numbers = 0;
};

Directory::Directory() : table_(new Table(kMinSlots, kMinSegmentNumbers)) {}
Directory::~Directory() { delete table_.load(); }

bool Directory::find(const Digest& digest, Place& place) {
  const ReaderGate::Pass pass(gate_);
  const Table& table = *table_.load(std::memory_order_seq_cst);
  const uint64_t tag = tag_of(digest);
  uint64_t position = position_of(digest, table.shift);
  for (uint64_t probes = 0; probes < kMaxProbes; ++probes, position = (position + 1) & table.mask) {
    uint64_t slot = table.slots[position].load(std::memory_order_acquire);
    if (slot == 0) return false;
    if ((slot & kTagMask) != tag) continue;
    uint32_t number = number_in(slot);
    const Segment* segment = table.segments[number].load(std::memory_order_seq_cst);
    // A segment is removed only after its entries moved on: if it went between the two loads, the slot knows where.
    while (segment == nullptr) {
      const uint64_t now = table.slots[position].load(std::memory_order_seq_cst);
      if (now == slot) break;
      slot = now;
      number = number_in(slot);
      segment = table.segments[number].load(std::memory_order_seq_cst);
    }
    if (segment == nullptr) continue;
    segment->prefetch(ordinal_in(slot));  // Comes along while we wait for the digest.
    if (segment->entry(ordinal_in(slot)).digest != digest) continue;
    place.segment = table.owners[number];
    place.ordinal = ordinal_in(slot);
    return true;
  }
  return false;
}

void Directory::insert(Table& table, uint32_t number, uint32_t ordinal) {
  const IndexEntry& entry = table.segments[number].load(std::memory_order_relaxed)->entry(ordinal);
  const uint64_t slot = slot_of(entry.digest, number, ordinal);
  uint64_t position = position_of(entry.digest, table.shift);
  for (uint64_t probes = 0; probes < kMaxProbes; ++probes, position = (position + 1) & table.mask) {
    std::atomic<uint64_t>& there = table.slots[position];
    const uint64_t found = there.load(std::memory_order_relaxed);
    if (found == 0) {
      there.store(slot, std::memory_order_release);
      ++table.used_slots;
      return;
    }
    if ((found & kTagMask) != (slot & kTagMask)) continue;
    const Segment* other = table.segments[number_in(found)].load(std::memory_order_relaxed);
    if (other == nullptr) continue;
    const IndexEntry& rival = other->entry(ordinal_in(found));
    if (rival.digest != entry.digest) continue;
    if (&rival == &entry) return;
    const bool is_newer = rival.written_ns <= entry.written_ns;
    if (is_newer) there.store(slot, std::memory_order_release);
    // The same record moved by a rewrite is no older copy, but it hides what the original hid.
    if (rival.written_ns != entry.written_ns || other->has_mark(ordinal_in(found), Segment::kHidesOlder))
      is_newer ? table.owners[number]->set_mark(ordinal, Segment::kHidesOlder)
               : table.owners[number_in(found)]->set_mark(ordinal_in(found), Segment::kHidesOlder);
    return;
  }
  ++crowded_out_;
}

void Directory::rebuild(uint64_t more_entries, uint64_t more_segments) {
  uint64_t entries = more_entries;
  for (const auto& segment : present_) entries += segment->entries().size();
  entries += entries / 4;  // So that the next few additions find room.
  const uint64_t slots = std::bit_ceil(std::max(kMinSlots, entries * 2));
  const uint64_t numbers =
      std::min<uint64_t>(kMaxSegmentNumbers, std::max<uint64_t>(kMinSegmentNumbers, (present_.size() + more_segments) * 2));
  auto fresh = std::make_unique<Table>(slots, numbers);
  crowded_out_ = 0;
  for (const auto& segment : present_) take_in(*fresh, segment);
  Table* old = table_.exchange(fresh.release(), std::memory_order_seq_cst);
  gate_.wait_for_readers();
  delete old;
}

void Directory::insert_range(Table& table, uint32_t number, uint32_t first, uint32_t end) {
  // The slots of one segment lie all over the table: have them on the way before they are needed.
  constexpr uint32_t kAhead = 16;
  const Segment& segment = *table.segments[number].load(std::memory_order_relaxed);
  for (uint32_t ordinal = first; ordinal < end; ++ordinal) {
    if (ordinal + kAhead < end)
      __builtin_prefetch(&table.slots[position_of(segment.entry(ordinal + kAhead).digest, table.shift)], 1);
    insert(table, number, ordinal);
  }
}

void Directory::take_in(Table& table, const std::shared_ptr<Segment>& segment) {
  const uint32_t number = table.used_numbers++;
  table.owners[number] = segment;
  table.segments[number].store(segment.get(), std::memory_order_release);
  insert_range(table, number, 0, static_cast<uint32_t>(segment->entries().size()));
}

void Directory::add(const std::vector<std::shared_ptr<Segment>>& segments) {
  uint64_t entries = 0;
  for (const auto& segment : segments) entries += segment->entries().size();
  Table* table = table_.load(std::memory_order_relaxed);
  if (table->used_numbers + segments.size() > table->segment_capacity ||
      (table->used_slots + entries) * 2 > table->mask + 1) {
    rebuild(entries, segments.size());
    table = table_.load(std::memory_order_relaxed);
  }
  for (const auto& segment : segments) {
    if (table->used_numbers == table->segment_capacity) return;  // 65,535 segments: the rest is not found.
    present_.push_back(segment);
    take_in(*table, segment);
  }
}

uint32_t Directory::number_of(const Segment& segment) const {
  const Table& table = *table_.load(std::memory_order_relaxed);
  // The latest come last, and they are asked for most.
  for (uint32_t number = table.used_numbers; number-- > 0;)
    if (table.segments[number].load(std::memory_order_relaxed) == &segment) return number;
  return kMaxSegmentNumbers;
}

void Directory::add_entries(const std::shared_ptr<Segment>& pending, uint32_t first, uint32_t end) {
  Table* table = table_.load(std::memory_order_relaxed);
  if ((table->used_slots + (end - first)) * 2 > table->mask + 1) {
    rebuild(end - first, 1);  // Takes all entries of the pending segment along.
    return;
  }
  const uint32_t number = number_of(*pending);
  if (number == kMaxSegmentNumbers) return;
  insert_range(*table, number, first, end);
}

void Directory::remove(const std::shared_ptr<Segment>& segment) {
  const uint32_t number = number_of(*segment);
  present_.erase(std::remove(present_.begin(), present_.end(), segment), present_.end());
  if (number == kMaxSegmentNumbers) return;
  Table& table = *table_.load(std::memory_order_relaxed);
  table.segments[number].store(nullptr, std::memory_order_seq_cst);
  gate_.wait_for_readers();
  table.owners[number].reset();
}

bool Directory::is_current(const Segment& segment, uint32_t ordinal) const {
  const Digest& digest = segment.entry(ordinal).digest;
  const Table& table = *table_.load(std::memory_order_relaxed);
  const uint64_t tag = tag_of(digest);
  uint64_t position = position_of(digest, table.shift);
  for (uint64_t probes = 0; probes < kMaxProbes; ++probes, position = (position + 1) & table.mask) {
    const uint64_t slot = table.slots[position].load(std::memory_order_relaxed);
    if (slot == 0) return false;
    if ((slot & kTagMask) != tag) continue;
    const Segment* found = table.segments[number_in(slot)].load(std::memory_order_relaxed);
    if (found == nullptr || found->entry(ordinal_in(slot)).digest != digest) continue;
    return found == &segment && ordinal_in(slot) == ordinal;
  }
  return false;
}

}  // namespace lmemo
