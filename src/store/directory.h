// Where every key of the store is: one probe in memory, whatever the number of segments.
//
// An open-addressing table of 8-byte slots, each a piece of the digest and the place (segment, ordinal) of the newest
// record. A digest's first bits choose the slot, so a sorted index fills the table front to back. Readers
// need no lock: slots are atomic, and whatever is taken away is freed only after the ReaderGate is empty.
//
// Rejected: searching each segment's sorted index (a store flushed often has hundreds of segments, and a miss would
// ask them all); a table on disk (one more file to keep true).
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
    std::shared_ptr<Segment> segment;
    uint32_t ordinal = 0;
  };
  // The newest record of the digest, erasures included. Any thread, no lock.
  bool find(const Digest& digest, Place& place);

  // The rest is called by one thread at a time.

  // Of two records of one digest the newer one stays; of two equally old ones, the one added later.
  void add(const std::vector<std::shared_ptr<Segment>>& segments);
  // Makes the latest entries of a pending segment findable.
  void add_entries(const std::shared_ptr<Segment>& pending, uint32_t first, uint32_t end);
  // Its records are no longer found; an older record of the same digest does not come back.
  void remove(const std::shared_ptr<Segment>& segment);

  bool is_current(const Segment& segment, uint32_t ordinal) const;
  const std::vector<std::shared_ptr<Segment>>& segments() const { return present_; }
  // Entries that found no slot near theirs: no digest of SHA-256 is that crowded, so somebody made them up.
  uint64_t crowded_out() const { return crowded_out_; }

  void forget_readers_after_fork() { gate_.forget_readers_after_fork(); }

 private:
  struct Table;
  void insert(Table& table, uint32_t number, uint32_t ordinal);
  void insert_range(Table& table, uint32_t number, uint32_t first, uint32_t end);
  void take_in(Table& table, const std::shared_ptr<Segment>& segment);
  // A table with room for the segments present and so many more entries and segments.
  void rebuild(uint64_t more_entries, uint64_t more_segments);
  uint32_t number_of(const Segment& segment) const;

  ReaderGate gate_;
  std::atomic<Table*> table_;
  std::vector<std::shared_ptr<Segment>> present_;
  uint64_t crowded_out_ = 0;
};

}  // namespace lmemo
