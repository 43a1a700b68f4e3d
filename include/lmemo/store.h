// The store: what was computed once, found at memory speed, never wrong, never lost.
//
//   LMEMO_ASSIGN(std::unique_ptr<Store> store, open_store("~/.cache/lmemo"));
//   if (std::optional<Hit> hit = store->find(key)) return decode(hit->value());
//   Value value = compute();
//   store->put(key, encode(value));   // A failed put is a lost chance, not a failed run.
//   store->flush();                   // What was put before this returned survives a power cut.
//
// Every function may be called from any thread. Several processes may open the same directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/hold.h"
#include "lmemo/key.h"
#include "lmemo/own_part.h"
#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo {

inline constexpr uint64_t kDefaultMaxBytes = uint64_t{10} << 30;

// A found entry: a view into the store that stays valid while this object (or a copy) lives, whatever happens to
// the store meanwhile. Cheap to copy.
class Hit {
 public:
  Hit(Bytes value, int64_t written_ns, Hold hold)
      : value_(value), written_ns_(written_ns), hold_(std::move(hold)) {}
  Hit(Bytes value, int64_t written_ns, std::shared_ptr<const void> owner)
      : value_(value), written_ns_(written_ns), owner_(std::move(owner)) {}

  Bytes value() const { return value_; }
  // When it was put: nanoseconds since 1970, never twice the same within a process.
  int64_t written_ns() const { return written_ns_; }

 private:
  Bytes value_;
  int64_t written_ns_;
  Hold hold_;  // One of these keeps the value alive.
  std::shared_ptr<const void> owner_;
};

// A found entry for whoever hands the value to code that may write to it.
struct WritableHit {
  Hit hit;
  // The value's bytes to write to. Empty where there are none, or while somebody else holds them: copy then.
  OwnPart own;
};

struct Item {
  const Key* key;
  Bytes value;
};

// One entry as scan() shows it.
struct EntryInfo {
  Digest digest;
  std::string_view kind;
  uint64_t value_bytes = 0;
  uint64_t stored_bytes = 0;  // With its key, fields and checksum.
  int64_t written_ns = 0;
  int64_t accessed_ns = 0;  // Coarse: good to about an hour.
  // Decodes the key's fields from the index; the value is not touched.
  std::function<Result<Key>()> key;
};

struct ScanFilter {
  std::string kind;           // Empty: every kind.
  std::vector<Field> fields;  // Entries must have all of these.
};

// Learns of all entries of a kind, and then of those that came since; see Store::follow().
class Follower {
 public:
  struct Seen {
    uint64_t stored_bytes = 0;
    int64_t written_ns = 0;
    // As they are encoded in the key (docs/format.md), in its order; valid during the call. Nobody hashed them: they are what the
    // index says.
    std::span<const std::string_view> fields;
    // A number for each field, or nothing. While the group stays the same, the same number is the same field: whoever decodes
    // fields needs to do so once.
    std::span<const uint32_t> numbers = {};
    uint64_t group = 0;
  };
  virtual ~Follower() = default;
  // Something was taken away: everything is shown again.
  virtual void start_over() = 0;
  // An entry may be shown more than once. Must not call back into the store.
  virtual void see(const Seen& entry) = 0;
};

// Where a follower stands. A fresh one stands before everything.
struct FollowPosition {
  uint64_t changes = 0, removals = 0;
  struct Segment {
    uint64_t entries = 0;
    bool was_pending = false;
  };
  std::map<uint64_t, Segment> segments;  // What it saw of each, by nonce.
};

// Return false to stop.
using ScanVisitor = std::function<bool(const EntryInfo&)>;

struct KindStats {
  uint64_t entries = 0;
  uint64_t value_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t max_bytes = 0;  // 0: only the limit of the whole store.
};

struct KindCounters {
  uint64_t hits = 0;
  uint64_t puts = 0;
  uint64_t put_bytes = 0;
};

struct StoreStats {
  // What is stored.
  uint64_t entries = 0;
  uint64_t live_bytes = 0;  // What compact() would leave, about.
  uint64_t disk_bytes = 0;  // What the directory takes.
  uint64_t max_bytes = 0;   // 0: no limit.
  uint64_t segments = 0;
  int64_t oldest_ns = 0;
  int64_t newest_ns = 0;
  std::map<std::string, KindStats> kinds;

  // What this Store object did since it was opened.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t puts = 0;
  uint64_t failed_puts = 0;  // Lost chances: full disk, limit, permissions.
  uint64_t erased = 0;
  uint64_t evicted = 0;
  uint64_t evicted_bytes = 0;
  uint64_t damaged_records = 0;  // Found damaged on the way; each was a miss.
  uint64_t published_segments = 0;
  uint64_t salvaged_records = 0;  // Taken over from writers that died.
  std::map<std::string, KindCounters> counters;
};

struct Damage {
  std::string file;              // Relative to the store.
  uint64_t offset = 0;           // Byte in the file.
  std::string what;              // "record checksum 9f3c…, expected 1c77…"
  std::optional<Digest> digest;  // Of the entry that is lost, if it is known.
};

struct VerifyReport {
  uint64_t segments = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::vector<Damage> damage;
  std::vector<std::string> unreadable;  // Files that could not be opened, and why: perhaps sound; left alone.
  std::vector<std::string> leftovers;   // Files of writers that died; repair takes over or removes them.
  std::vector<std::string> foreign;     // Files that lmemo did not write; left alone.
  bool is_clean() const { return damage.empty() && unreadable.empty() && leftovers.empty(); }
};

struct RepairReport {
  VerifyReport found;         // What was wrong before.
  uint64_t kept_records = 0;  // Of the files that were rewritten.
  uint64_t lost_records = 0;  // Damaged; they will be computed again.
  uint64_t removed_files = 0;
};

struct RemovalReport {
  uint64_t entries = 0;       // Removed.
  uint64_t stored_bytes = 0;  // Their size.
  uint64_t disk_bytes_before = 0;
  uint64_t disk_bytes_after = 0;
};

// Why a request missed. `nearest` shares the most fields with it; `differing` names the others.
struct FieldDifference {
  std::string name;
  std::optional<FieldValue> asked;   // Absent: the request has no such field.
  std::optional<FieldValue> stored;  // Absent: the entry has none.
};
struct Explanation {
  bool is_hit = false;
  uint64_t candidates = 0;  // Entries of the same kind.
  std::optional<Key> nearest;
  int64_t nearest_written_ns = 0;
  std::vector<FieldDifference> differing;
  std::string describe() const;  // "miss: tokenizer changed: \"a1b2\" → \"c3d4\""
};

// Something the user should hear once: a full disk, a damaged record, a limit too small for this run.
struct Notice {
  ErrorCode code;
  std::string message;
};

enum class CheckPolicy {
  // The checksum of the whole record is checked at its first find by this Store object, and again after the file was
  // changed, which is looked for every 10 ms. In between the page cache is trusted.
  first_find,
  every_find,  // … at every find: about a microsecond for 12 KB.
};

struct StoreOptions {
  uint64_t max_bytes = kDefaultMaxBytes;  // 0: no limit.
  std::map<std::string, uint64_t> max_bytes_by_kind;
  bool read_only = false;
  bool create = true;  // Make the directory if it is not there.
  CheckPolicy check = CheckPolicy::first_find;
  uint64_t segment_bytes = uint64_t{64} << 20;  // A batch is published when it is this large …
  double publish_seconds = 1.0;                 // … or this old at the next put.
  double refresh_seconds = 0.05;  // How old a miss may be before the directory is looked at again.
  // Called at most once per cause, from any thread. Must not call back into the store.
  std::function<void(const Notice&)> on_notice;
};

class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // nullopt on a miss. A damaged record counts as a miss, is counted and named, and is not looked at again.
  virtual std::optional<Hit> find(const Digest& digest) = 0;
  // The same without a copy for code that may write to what it gets.
  virtual std::optional<WritableHit> find_writable(const Digest& digest) {
    std::optional<Hit> hit = find(digest);
    if (!hit) return std::nullopt;
    return WritableHit{std::move(*hit), {}};
  }
  // Looks at the index only.
  virtual bool contains(const Digest& digest) = 0;
  // As contains(), and counts as a use, as a find does: the entry is protected in this run and young for prune(). How long
  // the value is, which is not looked at: only a find tells whether it is sound.
  virtual std::optional<uint64_t> touch(const Digest& digest) = 0;

  // After a failed write, puts are refused at once for two seconds, then tried again.
  // A later put of the same key wins. Visible to this Store object at once, to others when published.
  virtual Status put(const Key& key, Bytes value) = 0;
  virtual Status put_many(std::span<const Item> items) = 0;
  // Everything put or erased before survives power loss when this returns ok, and is visible to everyone.
  virtual Status flush() = 0;

  // True if it was there.
  virtual Result<bool> erase(const Digest& digest) = 0;
  virtual Result<RemovalReport> erase_matching(const ScanFilter& filter, const Watch& watch = {}) = 0;

  // In no particular order; entries put meanwhile may or may not be seen.
  virtual Status scan(const ScanFilter& filter, const ScanVisitor& visit) = 0;
  // For whoever keeps a view of all keys of a kind: shows what came since `position`, from the index alone. True if there
  // was anything; nanoseconds if not.
  virtual Result<bool> follow(const std::string& kind, FollowPosition& position, Follower& follower) = 0;
  // Notices now what others published, however lately the directory was looked at.
  virtual void refresh() = 0;
  virtual Result<Explanation> explain(const Key& key) = 0;
  virtual StoreStats stats() = 0;

  virtual Result<VerifyReport> verify(const Watch& watch = {}) = 0;
  virtual Result<RepairReport> repair(const Watch& watch = {}) = 0;
  // Drops what was neither put nor found for so long, and gives the space back.
  virtual Result<RemovalReport> prune(double older_than_seconds, const std::string& kind = {},
                                      const Watch& watch = {}) = 0;
  // Makes room by policy: least recently used first, until the store takes at most this much. What this Store object
  // put or found stays (a memory store has nothing else: there it goes).
  virtual Result<RemovalReport> evict(uint64_t target_bytes, const Watch& watch = {}) = 0;
  // The same among the entries of one kind, until they take at most this much. What this Store object put or found goes
  // last, but it goes.
  virtual Result<RemovalReport> evict_kind(const std::string& kind, uint64_t target_bytes,
                                           const Watch& watch = {}) = 0;
  // Rewrites what is alive and gives the rest back to the disk, while others read and write.
  virtual Result<RemovalReport> compact(const Watch& watch = {}) = 0;
  virtual Result<RemovalReport> clear(const std::string& kind = {}) = 0;
  // As max_bytes_by_kind, from now on and for this Store object; 0: no limit. A memory store has one limit for all kinds.
  virtual void limit_kind(const std::string& kind, uint64_t max_bytes) { (void)kind, (void)max_bytes; }

 protected:
  Store() = default;
};

Result<std::unique_ptr<Store>> open_store(const std::filesystem::path& directory, StoreOptions options = {});

// The same contract without a disk. Past max_bytes the least recently used entries go.
std::unique_ptr<Store> make_memory_store(uint64_t max_bytes = 0);

}  // namespace lmemo
