// Where every key of the store is: one probe in memory, whatever the number of segments.
//
// An open-addressing table in three arrays: 16 bits of every digest side by side, which answer nearly every miss and
// stay in the processor's cache; the place (segment, ordinal) of its newest record; and a slot of one cache line with all that
// a hit needs, made at the first find. About 17 bytes an entry when a store is opened, and 107 more for what is found.
// A digest's first bits choose the position, so a sorted index fills the table front to back. Readers
// need no lock: slots are atomic, and whatever is taken away is freed only after the readers left the ReaderGate.
//
// Rejected: searching each segment's sorted index (a store flushed often has hundreds of segments, and a miss would
// ask them all); a table on disk (one more file to keep true); slots of 8 bytes that only point into the segments' indexes,
// a third of the memory (a hit then waits for two more cache misses, on pages that are not huge: bench/store).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/reader_gate.h"
#include "store/segment.h"

namespace lmemo {

class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  struct Place {
    Segment* segment = nullptr;
    uint32_t ordinal = 0;
    // What the index says of it. The value is not checked.
    uint16_t kind = 0;
    Bytes value = {};
    int64_t written_ns = 0;
    bool is_ready = false;  // Somebody called mark_ready() for this record, and nobody took it back.
    ThreadLane::Counters* counters = nullptr;  // Of this thread for the segment, for Segment::count_hit().
    Hold hold = {};                            // Keeps the segment alive.
  };
  // The newest record of the digest, erasures included. Any thread, no lock.
  bool find(const Digest& digest, Place& place);
  // A bit beside every record, so that a find need not look elsewhere whether the record was checked. Any thread.
  void mark_ready(const Segment& segment, uint32_t ordinal);
  void take_back_ready(const Segment& segment, uint32_t ordinal);

  // The rest is called by one thread at a time.

  // Of two records of one digest the newer one stays; of two equally old ones, the one added later.
  void add(const std::vector<std::shared_ptr<Segment>>& segments);
  // Makes the latest entries of a pending segment findable.
  void add_entries(const std::shared_ptr<Segment>& pending, uint32_t first, uint32_t end);
  // Its records are no longer found; an older record of the same digest does not come back.
  void remove(const std::shared_ptr<Segment>& segment);

  // The newest of its digest, as far as is known. True for what the table had no room for.
  bool is_current(const Segment& segment, uint32_t ordinal) const;
  const std::vector<std::shared_ptr<Segment>>& segments() const { return present_; }
  // Entries that found no slot near theirs: no digest of SHA-256 is that crowded, so somebody made them up.
  uint64_t crowded_out() const { return crowded_out_; }

 private:
  struct Slot;
  struct Table;
  void insert(Table& table, uint32_t number, uint32_t ordinal);
  void insert_range(Table& table, uint32_t number, uint32_t first, uint32_t end);
  void take_in(Table& table, size_t present);
  // A table with room for the segments present and so many more entries and segments.
  void rebuild(uint64_t more_entries, uint64_t more_segments);
  uint32_t number_of(const Segment& segment) const;

  std::atomic<Table*> table_;
  std::vector<std::shared_ptr<Segment>> present_;
  std::vector<uint32_t>
      things_;  // For each segment present, the number under which it is held (held_things.h).
  uint64_t crowded_out_ = 0;
};

}  // namespace lmemo
