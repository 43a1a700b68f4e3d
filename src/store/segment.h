// One segment as readers see it: the mapped file, its index, and what this process knows about its entries.
// Immutable but for the per-entry marks, which are atomic; shared by everyone who holds a Hit in it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/held_things.h"
#include "lmemo/store.h"
#include "store/fields_block.h"
#include "store/record.h"
#include "store/segment_writer.h"

namespace lmemo {

enum class SegmentState {
  sealed,   // Footer and index are sound.
  scanned,  // They are not; the index was made anew from the sound records.
  pending,  // This process is still writing it.
};

class Segment {
 public:
  // Null if there is no such file. `incompatible` for a version that this reader does not know.
  static Result<std::shared_ptr<Segment>> open(FileSystem& files, const Path& path);
  // Makes sense of any bytes. `corruption` if they are nothing that lmemo wrote.
  static Result<std::shared_ptr<Segment>> read(std::shared_ptr<const MappedFile> mapping, std::string name);
  // The batch that this process is writing. The writer keeps its entries in place as long as `writer` lives.
  static std::shared_ptr<Segment> pending(std::shared_ptr<SegmentWriter> writer);

  const std::string& name() const { return name_; }
  SegmentState state() const { return state_; }
  uint64_t nonce() const { return nonce_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // Header and records: where a record may lie.
  Bytes records() const { return records_; }

  // Sorted by digest, but not while pending. A pending segment shows those there were when it was asked.
  std::span<const IndexEntry> entries() const;
  const IndexEntry& entry(uint32_t ordinal) const { return entries_[ordinal]; }
  std::string_view kind_name(uint16_t kind) const { return kinds()[kind]; }

  // The entry's value, if the record is sound and says what the index says.
  std::optional<RecordView> checked_record(uint32_t ordinal) const;
  Bytes unchecked_value(uint32_t ordinal) const;
  // See MappedFile::own_part(). Nothing while pending.
  OwnPart own_part(Bytes value) const { return mapping_->own_part(value); }
  // From the fields block, or from the record where the block is damaged.
  Result<std::string> encoding_of(uint32_t ordinal) const;
  // Read and checked at first use; nullopt if damaged, or if there is none yet.
  const std::optional<FieldsBlock>& fields() const;

  // What this Store object knows about an entry.
  static constexpr uint8_t kTouched = 1;     // Found or put by this run: protected from its evictions.
  static constexpr uint8_t kChecked = 2;     // Its checksum was checked once.
  static constexpr uint8_t kDamaged = 4;     // Never to be looked at again.
  static constexpr uint8_t kHidesOlder = 8;  // Another segment has an older record of this digest.
  bool has_mark(uint32_t ordinal, uint8_t mark) const {
    return (marks_[ordinal].load(std::memory_order_relaxed) & mark) != 0;
  }
  // True if it was not set before.
  bool set_mark(uint32_t ordinal, uint8_t mark) {
    if (has_mark(ordinal, mark)) return false;
    return (marks_[ordinal].fetch_or(mark, std::memory_order_relaxed) & mark) == 0;
  }
  // The first kinds of a segment, mostly the only ones, are counted without a locked instruction, beside the holds.
  void count_hit(uint16_t kind, ThreadLane::Counters& counters) {
    if (kind < kTallies)
      add_alone(counters.tallies[kind]);
    else
      hits_[kind].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t hits(uint16_t kind) const {
    if (kind < kTallies) return thing == 0 ? 0 : held_things::total(thing, kind);
    return hits_[kind].load(std::memory_order_relaxed);
  }
  uint32_t thing = 0;  // Under which the Directory holds this segment; guarded as the Directory is.
  // The writer of a pending segment may grow this: ask under the lock that guards the writer.
  const std::vector<std::string>& kinds() const { return writer_ ? writer_->kinds() : kinds_; }
  std::atomic<bool> is_touched{false};  // Some entry has kTouched.

  // When its file was last looked at and what it looked like then; for DiskStore::is_unchanged().
  std::atomic<int64_t> looked_at_ns{0}, modified_ns{-1};
  void forget_checks();

  // Where its sound blocks lie and what is wrong with the others; for verify and inspect.
  struct Problem {
    std::string block;
    uint64_t offset = 0;
    std::string what;
  };
  const std::vector<Problem>& problems() const { return problems_; }
  const std::optional<SegmentFooter>& footer() const { return footer_; }

 private:
  Segment() = default;
  Status read_ends();
  Status read_index();
  void scan_for_entries();
  void make_marks(size_t entry_count, size_t kind_count);

  static constexpr uint16_t kTallies = std::tuple_size_v<decltype(ThreadLane::Counters::tallies)>;

  // Constant after construction.
  std::string name_;
  SegmentState state_ = SegmentState::sealed;
  uint64_t nonce_ = 0;
  uint64_t file_bytes_ = 0;
  std::shared_ptr<const MappedFile> mapping_;
  std::shared_ptr<SegmentWriter> writer_;  // Only while pending.
  Bytes records_;
  const IndexEntry* entries_ = nullptr;
  size_t entry_count_ = 0;
  std::vector<IndexEntry> scanned_entries_;
  std::vector<std::string> kinds_;
  std::optional<SegmentFooter> footer_;
  std::vector<Problem> problems_;

  mutable std::once_flag fields_are_read_;  // Guards fields_.
  mutable std::optional<FieldsBlock> fields_;

  // Atomic, written by readers.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::atomic<uint8_t>[], Free> marks_;
  std::unique_ptr<std::atomic<uint64_t>[]> hits_;  // By kind.
};

}  // namespace lmemo
