#include "store/directory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <new>

namespace lmemo {
namespace {

// Place: 20 bits of segment number and 24 bits of ordinal.
constexpr uint32_t kMaxSegmentNumbers = (1u << 20) - 1;
constexpr uint64_t kMinSlots = 1024;
constexpr uint64_t kMinSegmentNumbers = 64;
// Uniform digests never come near this; a made-up index could otherwise make every probe a walk.
constexpr uint64_t kMaxProbes = 512;
// A new table is this full, and a table is replaced when it would become fuller than that, in percent. The tags of a
// probe lie side by side, so a full table costs a miss little.
constexpr uint64_t kFillWhenOpened = 60, kFillWhenGrown = 50, kMaxFill = 80;

static_assert(kMaxEntriesPerSegment <= (1u << 24));

uint64_t place_of(uint32_t number, uint32_t ordinal) { return uint64_t{number} << 24 | ordinal; }
uint32_t number_in(uint64_t place) { return static_cast<uint32_t>(place >> 24) & kMaxSegmentNumbers; }
uint32_t ordinal_in(uint64_t place) { return static_cast<uint32_t>(place & 0xffffff); }

using DigestWords = std::array<uint64_t, 4>;
DigestWords words_of(const Digest& digest) { return std::bit_cast<DigestWords>(digest.bytes); }

// Four tags of 16 bits in a word; 0 is a free slot.
constexpr uint64_t kTagsPerWord = 4;
constexpr uint64_t kEveryTag = 0x0001000100010001;
uint64_t tag_of(const DigestWords& digest) { return std::max<uint64_t>(digest[1] & 0xffff, 1); }
// The top bit of the lowest tag that is zero, and of others above it, which may or may not be zero.
uint64_t zero_tags(uint64_t word) { return (word - kEveryTag) & ~word & (kEveryTag << 15); }
uint64_t tag_index(uint64_t zeros) { return static_cast<uint64_t>(std::countr_zero(zeros)) / 16; }

struct FreePages {
  size_t byte_count = 0;
  void operator()(void* memory) const { ::munmap(memory, byte_count); }
};

// Zeros, from the kernel. A probe goes anywhere in the table: on huge pages it costs no walk through the page tables.
template <typename T>
std::unique_ptr<T[], FreePages> make_zeros(uint64_t count) {
  constexpr size_t kHugePage = 2 << 20;
  const size_t wanted = (count * sizeof(T) + 4095) / 4096 * 4096;
  const bool is_large = wanted >= kHugePage;
  const size_t taken = is_large ? wanted + kHugePage : wanted;
  void* memory = ::mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (is_large) {
    // Huge pages begin at multiples of their size: give back what lies around.
    auto* const first = static_cast<std::byte*>(memory);
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(first) % kHugePage) % kHugePage;
    if (before > 0) ::munmap(first, before);
    if (kHugePage > before) ::munmap(first + before + wanted, kHugePage - before);
    memory = first + before;
#if defined(__linux__)
    ::madvise(memory, wanted, MADV_HUGEPAGE);
#endif
  }
  return std::unique_ptr<T[], FreePages>(static_cast<T*>(memory), FreePages{wanted});
}

}  // namespace

// All that a find needs, in one cache line; made at the first find, so that opening a store stays cheap. Any thread may
// make it and any may take it back: `state` says who may write, and is the first and the last that a reader looks at.
struct alignas(64) Directory::Slot {
  static constexpr uint64_t kIsReady = uint64_t{1}
                                       << 63;  // The rest is right; the place stands in the lower bits.
  static constexpr uint64_t kIsChanging = uint64_t{1} << 62;  // One thread is writing the rest …
  static constexpr uint64_t kIsStale = uint64_t{1} << 61;     // … in vain.
  static constexpr int kKindShift = 48;
  static_assert(kMaxValueBytes < uint64_t{1} << kKindShift);

  std::array<std::atomic<uint64_t>, 4> digest;  // The same for as long as the table lives.
  std::atomic<uint64_t> state;
  std::atomic<const std::byte*> value;
  std::atomic<uint64_t> value_bytes_and_kind;  // 48 and 16 bits.
  std::atomic<int64_t> written_ns;

  bool has(const DigestWords& words) const {
    uint64_t difference = 0;
    for (size_t i = 0; i < words.size(); ++i)
      difference |= digest[i].load(std::memory_order_relaxed) ^ words[i];
    return difference == 0;
  }
  void make_ready(uint64_t place, const std::atomic<uint64_t>& current_place, const Segment& segment) {
    uint64_t before = state.load(std::memory_order_relaxed);
    if ((before & (kIsReady | kIsChanging)) != 0) return;
    if (!state.compare_exchange_strong(before, kIsChanging, std::memory_order_seq_cst)) return;
    const IndexEntry& entry = segment.entry(ordinal_in(place));
    const DigestWords words = words_of(entry.digest);
    // Each of these comes after what was stored before it.
    for (size_t i = 0; i < words.size(); ++i) digest[i].store(words[i], std::memory_order_release);
    value.store(segment.unchecked_value(ordinal_in(place)).data(), std::memory_order_release);
    value_bytes_and_kind.store(entry.value_bytes | uint64_t{entry.kind} << kKindShift,
                               std::memory_order_release);
    written_ns.store(entry.written_ns, std::memory_order_release);
    // Whoever moves the place on looks at the state after that: one of us sees the other.
    const bool is_right = current_place.load(std::memory_order_seq_cst) == place;
    uint64_t changing = kIsChanging;
    if (!state.compare_exchange_strong(changing, is_right ? kIsReady | place : 0, std::memory_order_seq_cst))
      state.store(0, std::memory_order_seq_cst);
  }
  void take_back() {
    uint64_t now = state.load(std::memory_order_seq_cst);
    while (now != 0 && !state.compare_exchange_weak(now, (now & kIsChanging) != 0 ? now | kIsStale : 0)) {}
  }
};

struct Directory::Table {
  Table(uint64_t slots_wanted, uint64_t segment_count)
      : slot_count(slots_wanted),
        // A probe never turns around at the end: there is room for the longest one, and its tags are read in words.
        tags(make_zeros<std::atomic<uint64_t>>((slot_count + kMaxProbes) / kTagsPerWord + 3)),
        places(make_zeros<std::atomic<uint64_t>>(slot_count + kMaxProbes + 3 * kTagsPerWord)),
        slots(make_zeros<Slot>(slot_count + kMaxProbes + 3 * kTagsPerWord)),
        segment_capacity(segment_count),
        segments(std::make_unique<Known[]>(segment_count)) {}

  struct Known {
    std::atomic<Segment*> segment{nullptr};
    uint32_t thing = 0;  // Read by readers while the segment is not null; never changes after that.
  };

  // A digest's first bits choose the position, in order.
  uint64_t position_of(const DigestWords& digest) const {
    static_assert(std::endian::native == std::endian::little);
    return static_cast<uint64_t>(static_cast<unsigned __int128>(__builtin_bswap64(digest[0])) * slot_count >>
                                 64);
  }
  void prefetch(const Digest& digest) const {
    const uint64_t position = position_of(words_of(digest));
    __builtin_prefetch(&tags[position / kTagsPerWord], 1);
    __builtin_prefetch(&places[position], 1);
  }

  // What find() tries first. Null: is_absent says whether the digest is not there, or probe() has to tell.
  [[gnu::always_inline]] const Slot* ready_slot_of(const DigestWords& digest, bool& is_absent) const {
    const uint64_t position = position_of(digest);
    // Most are at their position or the next one: on the way while we wait for the tags.
    __builtin_prefetch(&slots[position]);
    __builtin_prefetch(&slots[position + 1]);
    // The eight tags from the position on, without a branch: it would go wrong every other time.
    const uint64_t tag = tag_of(digest) * kEveryTag;
    const uint64_t word = position / kTagsPerWord;
    const int shift = static_cast<int>(position % kTagsPerWord * 16);
    const uint64_t first = tags[word].load(std::memory_order_acquire),
                   second = tags[word + 1].load(std::memory_order_acquire),
                   third = tags[word + 2].load(std::memory_order_acquire);
    const uint64_t low = first >> shift | second << 1 << (63 - shift);
    const uint64_t high = second >> shift | third << 1 << (63 - shift);
    const uint64_t same_low = zero_tags(low ^ tag), same_high = zero_tags(high ^ tag);
    is_absent = false;
    if ((same_low | same_high) == 0) {
      is_absent = (zero_tags(low) | zero_tags(high)) != 0;
      return nullptr;
    }
    const uint64_t index = same_low != 0 ? tag_index(same_low) : kTagsPerWord + tag_index(same_high);
    const Slot& slot = slots[position + index];
    return slot.has(digest) ? &slot : nullptr;
  }

  struct Probe {
    static constexpr uint64_t kNone = ~uint64_t{0};
    uint64_t found = kNone;      // The position of the digest, or
    uint64_t free = kNone;       // where it would go, or neither: too many others are here.
    uint64_t place = 0;          // Where its record is, and
    Segment* segment = nullptr;  // in which segment. Null: it was removed.
  };
  // Compares with what the segments' indexes say. A slot of a segment that was removed may be anybody's: it is passed
  // over, and remembered nowhere.
  [[gnu::noinline]] Probe probe(const Digest& digest) const {
    const DigestWords words = words_of(digest);
    const uint64_t tag = tag_of(words) * kEveryTag;
    const uint64_t position = position_of(words);
    uint64_t word = position / kTagsPerWord;
    // Tags before the position count as taken by others.
    uint64_t before = (uint64_t{1} << position % kTagsPerWord * 16) - 1;
    for (const uint64_t end = word + kMaxProbes / kTagsPerWord; word < end; ++word, before = 0) {
      const uint64_t tags_here = tags[word].load(std::memory_order_acquire);
      const uint64_t free = zero_tags(tags_here | before);
      const uint64_t up_to_free = free & -free;  // The lowest bit. Behind it nothing of ours can be.
      for (uint64_t same = zero_tags((tags_here ^ tag) | before) & (up_to_free - 1); same != 0;
           same &= same - 1) {
        const uint64_t candidate = word * kTagsPerWord + tag_index(same);
        uint64_t place = places[candidate].load(std::memory_order_seq_cst);
        Segment* segment = segments[number_in(place)].segment.load(std::memory_order_seq_cst);
        // A segment is removed only after its entries moved on: if it went between the two loads, the slot knows where.
        while (segment == nullptr) {
          const uint64_t now = places[candidate].load(std::memory_order_seq_cst);
          if (now == place) break;
          place = now;
          segment = segments[number_in(place)].segment.load(std::memory_order_seq_cst);
        }
        if (segment != nullptr && segment->entry(ordinal_in(place)).digest == digest)
          return {candidate, Probe::kNone, place, segment};
      }
      if (free != 0) return {Probe::kNone, word * kTagsPerWord + tag_index(free), 0, nullptr};
    }
    return {};
  }

  const uint64_t slot_count;
  const std::unique_ptr<std::atomic<uint64_t>[], FreePages> tags;
  const std::unique_ptr<std::atomic<uint64_t>[], FreePages> places;
  const std::unique_ptr<Slot[], FreePages> slots;
  const uint64_t segment_capacity;
  // A null segment was removed: its slots match nothing. Numbers are not used again within a table.
  const std::unique_ptr<Known[]> segments;
  uint64_t used_slots = 0;
  uint32_t used_numbers = 0;

  bool has_room_for(uint64_t entries) const { return (used_slots + entries) * 100 <= slot_count * kMaxFill; }
};

Directory::Directory() : table_(new Table(kMinSlots, kMinSegmentNumbers)) {}
Directory::~Directory() {
  delete table_.load();
  for (const uint32_t thing : things_) held_things::let_go(thing);
}

bool Directory::find(const Digest& digest, Place& found) {
  const ReaderGate::Pass pass;
  const Table& table = *table_.load(std::memory_order_seq_cst);
  bool is_absent = false;
  const Slot* const slot = table.ready_slot_of(words_of(digest), is_absent);
  if (is_absent) return false;
  uint64_t place = 0;
  found.is_ready = false;
  if (slot != nullptr) [[likely]] {
    const uint64_t state = slot->state.load(std::memory_order_acquire);
    const std::byte* const value = slot->value.load(std::memory_order_acquire);
    const uint64_t value_bytes_and_kind = slot->value_bytes_and_kind.load(std::memory_order_acquire);
    found.written_ns = slot->written_ns.load(std::memory_order_acquire);
    place = state & ~Slot::kIsReady;
    found.segment = table.segments[number_in(place)].segment.load(std::memory_order_seq_cst);
    found.value = {value, value_bytes_and_kind & ((uint64_t{1} << Slot::kKindShift) - 1)};
    found.kind = static_cast<uint16_t>(value_bytes_and_kind >> Slot::kKindShift);
    found.is_ready = (state & Slot::kIsReady) != 0 && slot->state.load(std::memory_order_seq_cst) == state &&
                     found.segment != nullptr;
  }
  if (!found.is_ready) {
    const Table::Probe probe = table.probe(digest);
    if (probe.found == Table::Probe::kNone) return false;
    place = probe.place;
    found.segment = probe.segment;
    const IndexEntry& entry = probe.segment->entry(ordinal_in(place));
    found.value = probe.segment->unchecked_value(ordinal_in(place));
    found.kind = entry.kind;
    found.written_ns = entry.written_ns;
    // Only further away than ready_slot_of() looks.
    found.is_ready =
        table.slots[probe.found].state.load(std::memory_order_acquire) == (Slot::kIsReady | place);
  }
  found.ordinal = ordinal_in(place);
  const uint32_t thing = table.segments[number_in(place)].thing;
  found.counters = &pass.lane().counters(thing);
  add_alone(found.counters->taken);
  found.hold = Hold(thing, Hold::Taken{});
  return true;
}

void Directory::mark_ready(const Segment& segment, uint32_t ordinal) {
  const ReaderGate::Pass pass;
  const Table& table = *table_.load(std::memory_order_seq_cst);
  const Table::Probe probe = table.probe(segment.entry(ordinal).digest);
  if (probe.found != Table::Probe::kNone && probe.segment == &segment && ordinal_in(probe.place) == ordinal)
    table.slots[probe.found].make_ready(probe.place, table.places[probe.found], segment);
}

void Directory::take_back_ready(const Segment& segment, uint32_t ordinal) {
  const ReaderGate::Pass pass;
  const Table& table = *table_.load(std::memory_order_seq_cst);
  const Table::Probe probe = table.probe(segment.entry(ordinal).digest);
  if (probe.found != Table::Probe::kNone) table.slots[probe.found].take_back();
}

void Directory::insert(Table& table, uint32_t number, uint32_t ordinal) {
  Segment& segment = *table.segments[number].segment.load(std::memory_order_relaxed);
  const IndexEntry& entry = segment.entry(ordinal);
  const Table::Probe probe = table.probe(entry.digest);
  const uint64_t place = place_of(number, ordinal);
  if (probe.found == Table::Probe::kNone) {
    if (probe.free == Table::Probe::kNone) {
      ++crowded_out_;
      return;
    }
    table.places[probe.free].store(place, std::memory_order_relaxed);
    std::atomic<uint64_t>& tags = table.tags[probe.free / kTagsPerWord];
    tags.store(tags.load(std::memory_order_relaxed) | tag_of(words_of(entry.digest))
                                                          << probe.free % kTagsPerWord * 16,
               std::memory_order_release);
    ++table.used_slots;
    return;
  }
  if (probe.place == place) return;
  Segment& rival = *probe.segment;
  const uint32_t rival_ordinal = ordinal_in(probe.place);
  const int64_t rival_written_ns = rival.entry(rival_ordinal).written_ns;
  const bool is_newer = rival_written_ns <= entry.written_ns;
  if (is_newer) {
    table.places[probe.found].store(place, std::memory_order_seq_cst);
    table.slots[probe.found].take_back();
  }
  // The same record moved by a rewrite is no older copy, but it hides what the original hid.
  if (rival_written_ns != entry.written_ns || rival.has_mark(rival_ordinal, Segment::kHidesOlder))
    is_newer ? segment.set_mark(ordinal, Segment::kHidesOlder)
             : rival.set_mark(rival_ordinal, Segment::kHidesOlder);
}

void Directory::rebuild(uint64_t more_entries, uint64_t more_segments) {
  uint64_t entries = 0;
  for (const auto& segment : present_) entries += segment->entries().size();
  // The first table of a store that is opened has no company to wait for; one that grew will go on growing.
  const uint64_t fill = entries == 0 ? kFillWhenOpened : kFillWhenGrown;
  entries += more_entries;
  const uint64_t slots = std::max(kMinSlots, entries * 100 / fill);
  const uint64_t numbers = std::min<uint64_t>(
      kMaxSegmentNumbers, std::max<uint64_t>(kMinSegmentNumbers, (present_.size() + more_segments) * 2));
  auto fresh = std::make_unique<Table>(slots, numbers);
  crowded_out_ = 0;
  for (size_t i = 0; i < present_.size(); ++i) take_in(*fresh, i);
  Table* old = table_.exchange(fresh.release(), std::memory_order_seq_cst);
  ReaderGate::wait_for_readers();
  delete old;
}

void Directory::insert_range(Table& table, uint32_t number, uint32_t first, uint32_t end) {
  // The slots of one segment lie all over the table: have them on the way before they are needed.
  constexpr uint32_t kAhead = 16;
  const Segment& segment = *table.segments[number].segment.load(std::memory_order_relaxed);
  for (uint32_t ordinal = first; ordinal < end; ++ordinal) {
    if (ordinal + kAhead < end) table.prefetch(segment.entry(ordinal + kAhead).digest);
    insert(table, number, ordinal);
  }
}

void Directory::take_in(Table& table, size_t present) {
  Segment& segment = *present_[present];
  const uint32_t number = table.used_numbers++;
  table.segments[number].thing = segment.thing = things_[present];
  table.segments[number].segment.store(&segment, std::memory_order_release);
  insert_range(table, number, 0, static_cast<uint32_t>(segment.entries().size()));
}

void Directory::add(const std::vector<std::shared_ptr<Segment>>& segments) {
  uint64_t entries = 0;
  for (const auto& segment : segments) entries += segment->entries().size();
  Table* table = table_.load(std::memory_order_relaxed);
  if (table->used_numbers + segments.size() > table->segment_capacity || !table->has_room_for(entries)) {
    rebuild(entries, segments.size());
    table = table_.load(std::memory_order_relaxed);
  }
  for (const auto& segment : segments) {
    if (table->used_numbers == table->segment_capacity) return;  // A million segments: the rest is not found.
    const uint32_t thing = held_things::add(segment);
    if (thing == 0) return;
    present_.push_back(segment);
    things_.push_back(thing);
    take_in(*table, present_.size() - 1);
  }
}

uint32_t Directory::number_of(const Segment& segment) const {
  const Table& table = *table_.load(std::memory_order_relaxed);
  // The latest come last, and they are asked for most.
  for (uint32_t number = table.used_numbers; number-- > 0;)
    if (table.segments[number].segment.load(std::memory_order_relaxed) == &segment) return number;
  return kMaxSegmentNumbers;
}

void Directory::add_entries(const std::shared_ptr<Segment>& pending, uint32_t first, uint32_t end) {
  Table* table = table_.load(std::memory_order_relaxed);
  if (!table->has_room_for(end - first)) {
    rebuild(end - first, 1);  // Takes all entries of the pending segment along.
    return;
  }
  const uint32_t number = number_of(*pending);
  if (number == kMaxSegmentNumbers) return;
  insert_range(*table, number, first, end);
}

void Directory::remove(const std::shared_ptr<Segment>& segment) {
  const uint32_t number = number_of(*segment);
  const auto found = std::find(present_.begin(), present_.end(), segment);
  if (found == present_.end()) return;
  const auto thing = things_.begin() + (found - present_.begin());
  const uint32_t held_as = *thing;
  present_.erase(found);
  things_.erase(thing);
  if (number != kMaxSegmentNumbers) {
    Table& table = *table_.load(std::memory_order_relaxed);
    table.segments[number].segment.store(nullptr, std::memory_order_seq_cst);
    ReaderGate::wait_for_readers();
  }
  held_things::let_go(held_as);
}

bool Directory::is_current(const Segment& segment, uint32_t ordinal) const {
  const Table& table = *table_.load(std::memory_order_relaxed);
  const IndexEntry& entry = segment.entry(ordinal);
  const Table::Probe probe = table.probe(entry.digest);
  // What the table had no room for is not found, but nobody may drop it for that: it counts as the newest
  // unless a newer one is known.
  const bool is_left_out = segment.thing == 0;
  if (probe.found == Table::Probe::kNone) return is_left_out || probe.free == Table::Probe::kNone;
  if (probe.segment == &segment) return ordinal_in(probe.place) == ordinal;
  return is_left_out && probe.segment->entry(ordinal_in(probe.place)).written_ns < entry.written_ns;
}

}  // namespace lmemo
