// The store without a disk: one mutex, one LRU. It passes the same contract suite as the disk store
// (tests/store/store_contract_test.cpp).
#include <algorithm>
#include <mutex>

#include "base/clock.h"
#include "lmemo/store.h"
#include "store/access_times.h"
#include "store/byte_lru.h"
#include "store/explanation.h"
#include "store/fields_block.h"
#include "store/format.h"

namespace lmemo {
namespace {

struct Entry {
  Key key;
  std::shared_ptr<const std::string> value;
  int64_t written_ns = 0;
  int64_t accessed_ns = 0;
};

uint64_t stored_bytes_of(const Entry& entry) {
  return stored_bytes(static_cast<uint16_t>(entry.key.encoding().size()), entry.value->size());
}

bool has_fields(const Key& key, const ScanFilter& filter) {
  if (!filter.kind.empty() && key.kind() != filter.kind) return false;
  const std::vector<Field> fields = key.fields();
  return std::all_of(filter.fields.begin(), filter.fields.end(), [&](const Field& wanted) {
    const Field stored{wanted.name, wanted.value.as_stored()};
    return std::find(fields.begin(), fields.end(), stored) != fields.end();
  });
}

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(uint64_t max_bytes)
      : entries_(max_bytes, [this](auto& item) { note_evicted(item); }) {}

  std::optional<Hit> find(const Digest& digest) override {
    const Lock lock(mutex_);
    Entry* entry = entries_.find(digest);
    if (!entry) {
      ++totals_.misses;
      return std::nullopt;
    }
    entry->accessed_ns = system_clock().now_ns();
    ++totals_.hits;
    ++totals_.counters[std::string(entry->key.kind())].hits;
    return Hit(bytes_of(*entry->value), entry->written_ns, entry->value);
  }

  bool contains(const Digest& digest) override {
    const Lock lock(mutex_);
    return entries_.peek(digest) != nullptr;
  }

  std::optional<uint64_t> touch(const Digest& digest) override {
    const Lock lock(mutex_);
    Entry* entry = entries_.find(digest);
    if (!entry) return std::nullopt;
    entry->accessed_ns = system_clock().now_ns();
    return entry->value->size();
  }

  Status put(const Key& key, Bytes value) override {
    if (is_reserved_kind(key.kind()))
      return Error{ErrorCode::invalid_argument,
                   "kind \"" + std::string(key.kind()) + "\" is reserved: use another one"};
    Entry entry{key, std::make_shared<const std::string>(text_of(value)), 0, 0};
    const uint64_t byte_count = stored_bytes_of(entry);
    const Lock lock(mutex_);
    entry.written_ns = entry.accessed_ns = last_stamp_ns_ =
        std::max(system_clock().now_ns(), last_stamp_ns_ + 1);
    if (!entries_.put(key, std::move(entry), byte_count)) {
      ++totals_.failed_puts;
      return Error{ErrorCode::no_space, "a value of " + std::to_string(value.size()) +
                                            " bytes does not fit into " +
                                            std::to_string(entries_.max_bytes()) + " bytes"};
    }
    ++totals_.puts;
    ++changes_;
    KindCounters& counters = totals_.counters[std::string(key.kind())];
    ++counters.puts;
    counters.put_bytes += value.size();
    return {};
  }

  Status put_many(std::span<const Item> items) override {
    for (const Item& item : items) LMEMO_TRY(put(*item.key, item.value));
    return {};
  }

  Status flush() override { return {}; }

  Result<bool> erase(const Digest& digest) override {
    const Lock lock(mutex_);
    const bool was_there = entries_.erase(digest);
    totals_.erased += was_there;
    ++changes_;
    return was_there;
  }

  Result<RemovalReport> erase_matching(const ScanFilter& filter, const Watch&) override {
    return remove_where([&](const Entry& entry) { return has_fields(entry.key, filter); });
  }

  Status scan(const ScanFilter& filter, const ScanVisitor& visit) override {
    std::vector<Entry> found;
    {
      const Lock lock(mutex_);
      for (const auto& item : entries_.items())
        if (has_fields(item.value.key, filter)) found.push_back(item.value);
    }
    for (const Entry& entry : found) {
      EntryInfo info;
      info.digest = entry.key;
      info.kind = entry.key.kind();
      info.value_bytes = entry.value->size();
      info.stored_bytes = stored_bytes_of(entry);
      info.written_ns = entry.written_ns;
      info.accessed_ns = entry.accessed_ns;
      info.key = [&entry]() -> Result<Key> { return entry.key; };
      if (!visit(info)) break;
    }
    return {};
  }

  Result<bool> follow(const std::string& kind, FollowPosition& position, Follower& follower) override {
    const Lock lock(mutex_);
    if (position.changes == changes_) return false;
    position.changes = changes_;
    follower.start_over();
    std::vector<std::string_view> fields;
    for (const auto& item : entries_.items()) {
      if (item.value.key.kind() != kind || !split_encoding(text_of(item.value.key.encoding()), fields))
        continue;
      follower.see({item.byte_count, item.value.written_ns, fields});
    }
    return true;
  }

  void refresh() override {}

  Result<Explanation> explain(const Key& key) override {
    Explanation explanation;
    const Lock lock(mutex_);
    explanation.is_hit = entries_.peek(key) != nullptr;
    for (const auto& item : entries_.items()) {
      if (item.value.key.kind() != key.kind()) continue;
      ++explanation.candidates;
      std::vector<FieldDifference> differing = differences(key, item.value.key);
      const bool is_better = !explanation.nearest || differing.size() < explanation.differing.size() ||
                             (differing.size() == explanation.differing.size() &&
                              item.value.written_ns > explanation.nearest_written_ns);
      if (!is_better) continue;
      explanation.nearest = item.value.key;
      explanation.nearest_written_ns = item.value.written_ns;
      explanation.differing = std::move(differing);
    }
    return explanation;
  }

  StoreStats stats() override {
    const Lock lock(mutex_);
    StoreStats stats = totals_;
    stats.max_bytes = entries_.max_bytes();
    for (const auto& item : entries_.items()) {
      const Entry& entry = item.value;
      KindStats& kind = stats.kinds[std::string(entry.key.kind())];
      ++kind.entries;
      ++stats.entries;
      kind.value_bytes += entry.value->size();
      kind.stored_bytes += item.byte_count;
      stats.live_bytes += item.byte_count;
      stats.oldest_ns = stats.oldest_ns == 0 ? entry.written_ns : std::min(stats.oldest_ns, entry.written_ns);
      stats.newest_ns = std::max(stats.newest_ns, entry.written_ns);
    }
    return stats;
  }

  Result<VerifyReport> verify(const Watch&) override {
    VerifyReport report;
    const Lock lock(mutex_);
    report.records = entries_.size();
    report.bytes = entries_.byte_count();
    return report;
  }

  Result<RepairReport> repair(const Watch& watch) override {
    RepairReport report;
    LMEMO_ASSIGN(report.found, verify(watch));
    return report;
  }

  Result<RemovalReport> prune(double older_than_seconds, const std::string& kind, const Watch&) override {
    if (!(older_than_seconds >= 0))
      return Error{ErrorCode::invalid_argument, "prune: an age of at least 0 seconds is expected"};
    const int64_t limit_ns =
        system_clock().now_ns() - static_cast<int64_t>(std::min(older_than_seconds * 1e9, 9e18));
    return remove_where([&](const Entry& entry) {
      return (kind.empty() || entry.key.kind() == kind) &&
             std::max(entry.accessed_ns, entry.written_ns) < limit_ns;
    });
  }

  Result<RemovalReport> evict(uint64_t target_bytes, const Watch&) override {
    const Lock lock(mutex_);
    RemovalReport report;
    const size_t count = entries_.size();
    const uint64_t bytes = entries_.byte_count();
    entries_.shrink_to(target_bytes);
    ++changes_;
    report.entries = count - entries_.size();
    report.stored_bytes = bytes - entries_.byte_count();
    return report;
  }

  Result<RemovalReport> evict_kind(const std::string& kind, uint64_t target_bytes, const Watch&) override {
    uint64_t used = 0;
    // Most recent first: what fits stays.
    return remove_where([&](const Entry& entry) {
      if (entry.key.kind() != kind) return false;
      used += stored_bytes_of(entry);
      return used > target_bytes;
    });
  }

  Result<RemovalReport> compact(const Watch&) override { return RemovalReport{}; }

  Result<RemovalReport> clear(const std::string& kind) override {
    return remove_where([&](const Entry& entry) { return kind.empty() || entry.key.kind() == kind; });
  }

 private:
  using Lock = std::lock_guard<std::mutex>;

  template <typename MayGo>
  Result<RemovalReport> remove_where(const MayGo& may_go) {
    RemovalReport report;
    std::vector<Digest> going;
    const Lock lock(mutex_);
    for (const auto& item : entries_.items()) {
      if (!may_go(item.value)) continue;
      going.push_back(item.key);
      report.stored_bytes += item.byte_count;
    }
    report.entries = going.size();
    for (const Digest& digest : going) entries_.erase(digest);
    ++changes_;
    return report;
  }

  template <typename Evicted>
  void note_evicted(const Evicted& item) {
    ++totals_.evicted;
    totals_.evicted_bytes += item.byte_count;
  }

  std::mutex mutex_;  // Guards everything below.
  StoreStats totals_;
  int64_t last_stamp_ns_ = 0;
  uint64_t changes_ = 1;
  ByteLru<Digest, Entry> entries_;
};

}  // namespace

std::unique_ptr<Store> make_memory_store(uint64_t max_bytes) {
  return std::make_unique<MemoryStore>(max_bytes);
}

}  // namespace lmemo
