// The store on disk: a directory of immutable segments.
//
//   DIR/segments/STAMP-NONCE.seg   published, never changed again
//   DIR/writing/STAMP-NONCE.part   private to a live writer, or left by a dead one
//   DIR/maintenance.lock           held while somebody evicts or compacts, so that two do not do the same work
//
// The class is told in several files: disk_store.cpp (open, find, put), disk_store_publish.cpp (how a batch becomes
// a segment, how others' segments are noticed), disk_store_rewrite.cpp (eviction, pruning, compaction: all
// are "copy what stays, unlink the rest"), disk_store_check.cpp (verify, repair), disk_store_query.cpp (scan, explain,
// stats).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/file_system.h"
#include "lmemo/store.h"
#include "stats/striped_counter.h"
#include "store/access_times.h"
#include "store/directory.h"

namespace lmemo {

// What a test may swap.
struct StoreEnvironment {
  FileSystem* files = &real_file_system();
  const Clock* clock = &system_clock();
};

Result<std::unique_ptr<Store>> open_disk_store(const Path& directory, StoreOptions options,
                                               const StoreEnvironment& environment);

// "0123456789abcdef-0123456789abcdef" + suffix, and nothing else.
bool is_segment_name(std::string_view name, std::string_view suffix);

class DiskStore final : public Store {
 public:
  DiskStore(Path directory, StoreOptions options, const StoreEnvironment& environment);
  ~DiskStore() override;
  Status open();

  std::optional<Hit> find(const Digest& digest) override;
  std::optional<WritableHit> find_writable(const Digest& digest) override;
  bool contains(const Digest& digest) override;
  std::optional<uint64_t> touch(const Digest& digest) override;
  Status put(const Key& key, Bytes value) override;
  Status put_many(std::span<const Item> items) override;
  Status flush() override;
  Result<bool> erase(const Digest& digest) override;
  Result<RemovalReport> erase_matching(const ScanFilter& filter, const Watch& watch) override;

  Status scan(const ScanFilter& filter, const ScanVisitor& visit) override;
  Result<bool> follow(const std::string& kind, FollowPosition& position, Follower& follower) override;
  void refresh() override;
  Result<Explanation> explain(const Key& key) override;
  StoreStats stats() override;

  Result<VerifyReport> verify(const Watch& watch) override;
  Result<RepairReport> repair(const Watch& watch) override;
  Result<RemovalReport> prune(double older_than_seconds, const std::string& kind,
                              const Watch& watch) override;
  Result<RemovalReport> evict(uint64_t target_bytes, const Watch& watch) override;
  Result<RemovalReport> evict_kind(const std::string& kind, uint64_t target_bytes,
                                   const Watch& watch) override;
  Result<RemovalReport> compact(const Watch& watch) override;
  Result<RemovalReport> clear(const std::string& kind) override;
  void limit_kind(const std::string& kind, uint64_t max_bytes) override;

  // Around fork(): hold everything still, then go on in both processes.
  void before_fork() { mutex_.lock(), notice_mutex_.lock(); }
  void after_fork_in_parent() { notice_mutex_.unlock(), mutex_.unlock(); }
  void after_fork_in_child();

 private:
  using SegmentPtr = std::shared_ptr<Segment>;
  using Lock = std::lock_guard<std::mutex>;

  // --- disk_store.cpp
  Status make_directories();
  bool is_alive(const Segment& segment, uint32_t ordinal) const;  // The newest of its digest, and a value.
  std::optional<Hit> check_out(Directory::Place& place);
  bool look_up(const Digest& digest, Directory::Place& place);  // The value is not checked.
  void note_use(Segment& segment, uint32_t ordinal);
  // An error if the run would take more than a limit: what it put or found is protected, and must not push itself out.
  Status check_run_fits_locked(std::string_view kind, uint64_t kind_bytes, uint64_t all_bytes);
  uint64_t limit_for_run() const;
  static bool was_looked_at(const Segment& segment);
  bool is_unchanged(Segment& segment);
  void note_damage(Segment& segment, uint32_t ordinal);
  void notify(ErrorCode code, const std::string& cause, const std::string& message);
  Status check_puttable(const Key& key, Bytes value) const;
  Status append_locked(std::span<const NewRecord> records);
  Status ensure_writer_locked(const NewRecord& record);
  int64_t next_stamp_locked();
  // The next one, or if what it is to replace has a later one (a clock was wrong for days), one that is later than that.
  int64_t stamp_locked(const Digest& digest);
  bool is_due_locked() const;
  // Appends, and publishes as batches fill up. Stamps the records.
  Status write(std::span<NewRecord> records);
  size_t how_many_fit_locked(std::span<const NewRecord> records) const;
  Error read_only_error() const;
  // Notes that the disk said no, tells it once, and hands the error back.
  Status refuse(const Error& error);

  // --- disk_store_publish.cpp
  struct Batch {
    std::shared_ptr<SegmentWriter> writer;
    SegmentPtr segment;  // The pending one, through which its records are found.
  };
  Status publish(bool even_if_young);
  Status publish_batch(SegmentWriter& writer);
  Status move_into_place(SegmentWriter& writer);
  Status renew_unpublished_locked();
  void write_access_times();
  bool refresh_if_due();
  bool refresh_locked(bool even_if_unchanged);
  // An error if that did not work: whoever drops records must not do so from an old view.
  Status refresh_all_locked();
  // False: a file is gone, or not readable now.
  bool load_locked(const std::vector<std::string>& names);
  bool open_locked(const std::string& name, std::vector<SegmentPtr>& segments);
  void forget_locked(const std::string& name);
  // Out of the directory; its hits stay counted.
  void leave_locked(const SegmentPtr& segment);
  Status take_over_leftovers(std::vector<std::string>* still_there, uint64_t* removed);
  // A private file under a new name; `capacity` as in SegmentWriter::create().
  Result<std::unique_ptr<SegmentWriter>> begin_segment_locked(uint64_t capacity);

  // --- disk_store_rewrite.cpp
  enum class Fate : uint8_t {
    keep,
    drop,
    hide
  };  // hide: an erasure stays, because older records exist elsewhere.
  struct Plan {
    SegmentPtr segment;
    std::vector<Fate> fates;       // By ordinal.
    std::vector<uint32_t> access;  // Minutes, by ordinal.
    uint64_t dropped_entries = 0;
    uint64_t dropped_bytes = 0;
    uint64_t kept_entries = 0;
    uint64_t kept_bytes = 0;
    // Of records that a dead rewriter had moved: they must not outlive what it made of them.
    bool has_copies = false;
  };
  struct Rewritten {
    uint64_t kept_records = 0;
    uint64_t damaged_records = 0;
  };
  // May an entry that is alive go?
  using MayGo = std::function<bool(const Segment& segment, uint32_t ordinal, int64_t accessed_ns)>;
  Result<std::unique_ptr<FileLock>> lock_maintenance();
  Result<std::unique_ptr<FileLock>> begin_maintenance();
  // Erasures from before `forget_before_ns` go, the others stay.
  std::vector<Plan> plan_locked(const std::vector<SegmentPtr>& segments, const MayGo& may_go,
                                int64_t forget_before_ns);
  std::vector<SegmentPtr> published_locked() const;  // By age.
  Plan keep_all_locked(const SegmentPtr& segment);
  Result<Rewritten> rewrite(std::vector<Plan> plans, const Watch& watch);
  // A plan for every segment; the report gets what goes, and the bytes on disk before.
  Result<std::vector<Plan>> plan_removal(const MayGo& may_go, RemovalReport& report);
  Result<RemovalReport> remove_where(const MayGo& may_go, const Watch& watch);
  Status flush_before_eviction();
  Status remove_what_goes_whole(std::vector<Plan>& plans);
  Result<RemovalReport> evict_until(const std::string& kind, uint64_t target_bytes, bool spares_this_run,
                                    const Watch& watch);
  Status drop_the_dead(const Watch& watch);
  Status forget_erasures(int64_t before_ns, const Watch& watch);
  Status make_room(uint64_t for_bytes);
  void merge_small_segments();
  bool has_other_private_files() const;
  std::vector<uint32_t> access_minutes_locked(const Segment& segment);
  uint64_t disk_bytes_locked() const;
  void forget_run_bytes(std::string_view kind, uint64_t bytes);
  void forget_kind_bytes_locked(std::string_view kind, uint64_t bytes);
  uint64_t limit_for_segments() const;  // Leaves room for a batch being written and one being rewritten.

  // --- disk_store_check.cpp
  Status verify_segment(const std::string& name, VerifyReport& report, uint64_t done_bytes,
                        uint64_t total_bytes, std::set<std::string>& damaged, const Watch& watch);
  Result<VerifyReport> verify_files(std::set<std::string>& damaged, const Watch& watch);

  // Constant after open().
  const Path directory_path_, segments_path_, writing_path_;
  StoreOptions options_;
  FileSystem& files_;
  const Clock& clock_;
  uint64_t batch_bytes_ = 0;  // segment_bytes, or less where max_bytes is small.

  Directory directory_;  // find() by anyone; changes under mutex_.
  std::atomic<int64_t> last_look_ns_{0};
  std::atomic<uint64_t> run_bytes_{0};  // Put or found by this run: protected.
  std::atomic<bool> has_kind_limits_{false};
  // For follow(): any change, and those that take something away.
  std::atomic<uint64_t> changes_{1}, removals_{1};
  std::atomic<bool> directory_needs_sync_{false};  // A name is in place, but its sync failed.
  std::atomic<bool> root_needs_sync_{true};        // The name "segments" may not be synced yet.
  StripedCounter misses_;
  std::atomic<uint64_t> damaged_records_{0}, evicted_{0}, evicted_bytes_{0}, salvaged_{0};

  // Order of locking: publish_mutex_, maintenance_mutex_, mutex_. Pointers, because a forked child starts anew.
  std::unique_ptr<std::mutex> publish_mutex_ = std::make_unique<std::mutex>();  // One publishes at a time.
  std::unique_ptr<std::mutex> maintenance_mutex_ = std::make_unique<std::mutex>();  // One rewrites at a time.
  std::mutex mutex_;             // Guards everything below.
  Batch writing_;                // Takes records. Null until the first put.
  Batch unpublished_;            // Could not be published; tried again before anything else is.
  int64_t first_put_ns_ = 0;     // Of the batch in writing_, monotonic.
  int64_t refuse_until_ns_ = 0;  // After a failure puts are refused for a while, monotonic.
  std::optional<Error> last_failure_;
  int64_t last_stamp_ns_ = 0;
  int64_t newest_seen_ns_ = 0;  // Of all records, also those that are too far ahead to be followed.
  std::unordered_map<std::string, SegmentPtr> published_;  // By file name.
  std::set<std::string> refused_;                          // Files that cannot be read; told once.
  int64_t directory_modified_ns_ = -1;
  bool listing_was_racy_ = false;
  bool is_view_current_ = false;      // The last refresh saw the whole directory …
  bool has_unread_segments_ = false;  // … but could not read all that is in it: older records may come back.
  bool has_incompatible_segments_ = false;
  uint64_t lost_records_ = 0;  // Put, and then lost by a failed sync; flush() tells.
  struct KindLimit {
    uint64_t max_bytes = 0;
    uint64_t run_bytes = 0;  // As run_bytes_.
  };
  std::map<std::string, KindLimit, std::less<>> kind_limits_;
  std::map<std::string, KindCounters> counters_;  // Puts; hits of segments that are gone.
  uint64_t puts_ = 0, failed_puts_ = 0, erased_ = 0, published_segments_ = 0;

  std::mutex notice_mutex_;        // Guards notices_. Never held while calling out.
  std::set<std::string> notices_;  // Causes already told.
};

}  // namespace lmemo
