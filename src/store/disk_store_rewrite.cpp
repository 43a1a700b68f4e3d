// Eviction, pruning, compaction and merging are one thing: copy what stays into new segments, publish them, and only then
// unlink the old ones. A crash in between leaves some records twice, which is harmless. Readers with an old mapping stay
// correct, because an unlinked file lives as long as it is mapped.
//
// Invariant 4: a segment is unlinked only after everything that stays of it is in a synced, published segment.
#include <algorithm>
#include <cmath>
#include <thread>

#include "base/hex.h"
#include "store/disk_store.h"

namespace lmemo {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int kMaintenanceWaits = 1000;  // Times 10 ms.
constexpr uint64_t kRewriteBytes = uint64_t{64} << 20;
constexpr size_t kGatherRecords = 64;
constexpr uint64_t kGatherBytes = 1 << 20;
// A segment that is this full of living records is not worth copying.
constexpr double kMinGain = 0.02;

// Small segments are merged when there are this many of one size class: each record is then copied at most
// once per class, however often somebody flushes.
constexpr size_t kMergeCount = 16;
constexpr uint64_t kMergeClasses[] = {32 << 10, 256 << 10, 2 << 20};

const auto kNothingMayGo = [](const Segment&, uint32_t, int64_t) { return false; };

int merge_class(uint64_t file_bytes) {
  for (int i = 0; i < 3; ++i)
    if (file_bytes < kMergeClasses[i]) return i;
  return -1;
}

}  // namespace

uint64_t DiskStore::limit_for_segments() const {
  return options_.max_bytes == 0 ? UINT64_MAX
                                 : options_.max_bytes - std::min(options_.max_bytes, 2 * batch_bytes_);
}

void DiskStore::forget_run_bytes(std::string_view kind, uint64_t bytes) {
  run_bytes_.fetch_sub(std::min(bytes, run_bytes_.load(std::memory_order_relaxed)),
                       std::memory_order_relaxed);
  const Lock lock(mutex_);
  forget_kind_bytes_locked(kind, bytes);
}

void DiskStore::forget_kind_bytes_locked(std::string_view kind, uint64_t bytes) {
  if (const auto limit = kind_limits_.find(kind); limit != kind_limits_.end())
    limit->second.run_bytes -= std::min(bytes, limit->second.run_bytes);
}

uint64_t DiskStore::disk_bytes_locked() const {
  uint64_t bytes = 0;
  for (const auto& [name, segment] : published_) bytes += segment->file_bytes();
  for (const Batch* batch : {&writing_, &unpublished_})
    if (batch->writer) bytes += batch->writer->byte_count();
  return bytes;
}

Result<std::unique_ptr<FileLock>> DiskStore::lock_maintenance() {
  for (int wait = 0;; ++wait) {
    Result<std::unique_ptr<FileLock>> lock = files_.try_lock(directory_path_ / "maintenance.lock");
    if (lock.ok() || lock.error().code != ErrorCode::busy || wait == kMaintenanceWaits) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// What a dead rewriter left are copies. Under the lock no rewriter lives, so from here on all copies are known: none can
// come back after what it is a copy of was dropped.
Result<std::unique_ptr<FileLock>> DiskStore::begin_maintenance() {
  LMEMO_ASSIGN(std::unique_ptr<FileLock> file_lock, lock_maintenance());
  // One that cannot be taken over, on a full disk say, must not keep us from making room.
  [[maybe_unused]] const Status taken_over = take_over_leftovers(nullptr, nullptr);
  return file_lock;
}

bool DiskStore::has_other_private_files() const {
  const Result<std::vector<std::string>> names = files_.list(writing_path_);
  return !names.ok() || !names->empty();
}

std::vector<uint32_t> DiskStore::access_minutes_locked(const Segment& segment) {
  Directory::Place place;
  std::optional<RecordView> record;
  if (directory_.find(access_key(segment.nonce()), place))
    record = place.segment->checked_record(place.ordinal);
  const AccessTimes times(segment, record ? record->value : Bytes{});
  const uint32_t now = minutes_of(clock_.now_ns());
  std::vector<uint32_t> minutes(segment.entries().size());
  for (uint32_t ordinal = 0; ordinal < minutes.size(); ++ordinal)
    minutes[ordinal] = segment.has_mark(ordinal, Segment::kTouched) ? now : times.minutes(ordinal);
  return minutes;
}

std::vector<DiskStore::SegmentPtr> DiskStore::published_locked() const {
  std::vector<SegmentPtr> segments;
  for (const auto& [name, segment] : published_) segments.push_back(segment);
  // What was written together stays together.
  std::sort(segments.begin(), segments.end(),
            [](const SegmentPtr& a, const SegmentPtr& b) { return a->name() < b->name(); });
  return segments;
}

std::vector<DiskStore::Plan> DiskStore::plan_locked(const std::vector<SegmentPtr>& segments,
                                                    const MayGo& may_go, int64_t forget_before_ns) {
  std::set<uint64_t> nonces;
  for (const auto& [name, segment] : published_) nonces.insert(segment->nonce());
  std::vector<Plan> plans;
  for (const SegmentPtr& segment : segments) {
    Plan plan;
    plan.segment = segment;
    plan.access = access_minutes_locked(*segment);
    const uint32_t count = static_cast<uint32_t>(segment->entries().size());
    plan.fates.assign(count, Fate::drop);
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      const IndexEntry& entry = segment->entry(ordinal);
      Fate& fate = plan.fates[ordinal];
      if (segment->has_mark(ordinal, Segment::kDamaged)) {
        if (directory_.is_current(*segment, ordinal) && segment->has_mark(ordinal, Segment::kHidesOlder))
          fate = Fate::hide;
        continue;
      }
      if (!directory_.is_current(*segment, ordinal)) {
        Directory::Place current;
        if (!directory_.find(entry.digest, current)) continue;
        const bool is_same_record = current.segment->entry(current.ordinal).written_ns == entry.written_ns;
        if (current.segment->state() == SegmentState::pending && !is_same_record) {
          // Invariant 4: what replaces it is not synced yet.
          fate = Fate::keep;
          ++plan.kept_entries;
          plan.kept_bytes += stored_bytes(entry);
        } else if (is_same_record) {
          plan.has_copies = true;
        }
        continue;
      }
      const bool hides_older = segment->has_mark(ordinal, Segment::kHidesOlder) || has_unread_segments_;
      if (entry.kind == kErasureKind) {
        fate = entry.written_ns < forget_before_ns ? Fate::drop : Fate::keep;
      } else if (segment->kind_name(entry.kind) == kAccessKind) {
        // Access times are about a segment, and go with it. The copies carry their times in their index.
        const Result<std::string> encoding = segment->encoding_of(ordinal);
        if (encoding.ok() && nonces.contains(segment_of_access_key(*encoding))) fate = Fate::keep;
      } else if (may_go(*segment, ordinal, ns_of_minutes(plan.access[ordinal]))) {
        fate = hides_older ? Fate::hide : Fate::drop;
        ++plan.dropped_entries;
        plan.dropped_bytes += stored_bytes(entry);
      } else {
        fate = Fate::keep;
      }
      if (fate == Fate::keep) {
        ++plan.kept_entries;
        plan.kept_bytes += stored_bytes(entry);
      }
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

DiskStore::Plan DiskStore::keep_all_locked(const SegmentPtr& segment) {
  Plan plan;
  plan.segment = segment;
  plan.fates.assign(segment->entries().size(), Fate::keep);
  plan.access = access_minutes_locked(*segment);
  return plan;
}

// First, and with its mappings: on a full disk that makes the room for the copies of what stays of the others.
Status DiskStore::remove_what_goes_whole(std::vector<Plan>& plans) {
  const auto goes_whole = [](const Plan& plan) {
    return std::all_of(plan.fates.begin(), plan.fates.end(), [](Fate fate) { return fate == Fate::drop; });
  };
  Status removed;
  for (const Plan& plan : plans)
    if (removed.ok() && goes_whole(plan)) removed = files_.remove(segments_path_ / plan.segment->name());
  if (std::erase_if(plans, goes_whole) == 0) return {};
  const Lock lock(mutex_);
  refresh_locked(true);
  return removed;
}

Result<DiskStore::Rewritten> DiskStore::rewrite(std::vector<Plan> plans, const Watch& watch) {
  LMEMO_TRY(remove_what_goes_whole(plans));
  Rewritten result;
  std::unique_ptr<SegmentWriter> writer;
  std::vector<Path> emptied;  // Everything that stays of these is in `writer` or published.
  uint64_t total = 0, done = 0;
  for (const Plan& plan : plans) total += plan.segment->records().size();

  const auto finish_output = [&]() -> Status {
    if (writer) {
      const std::unique_ptr<SegmentWriter> full = std::move(writer);
      Status moved = full->seal();
      if (moved.ok()) moved = move_into_place(*full);
      if (!moved.ok()) {
        [[maybe_unused]] const Status removed = files_.remove(full->path());
        return moved;
      }
      if (directory_needs_sync_) return Error{ErrorCode::io_error, "cannot sync " + segments_path_.string()};
    }
    for (const Path& path : emptied) LMEMO_TRY(files_.remove(path));
    emptied.clear();
    return {};
  };

  // Many records per write: views of the mapped inputs, which live as long as the plans.
  std::vector<NewRecord> gathered;
  uint64_t gathered_bytes = 0;
  const auto write_gathered = [&]() -> Status {
    if (gathered.empty()) return {};
    if (writer && (!writer->has_room_for(gathered_bytes) ||
                   writer->entry_count() + gathered.size() > kMaxEntriesPerSegment))
      LMEMO_TRY(finish_output());
    if (!writer) {
      const Lock lock(mutex_);
      LMEMO_ASSIGN(writer,
                   begin_segment_locked(std::max(std::min(kRewriteBytes, batch_bytes_), gathered_bytes)));
    }
    LMEMO_TRY(writer->append(gathered));
    gathered.clear();
    gathered_bytes = 0;
    return {};
  };

  const auto copy_all = [&]() -> Status {
    for (const Plan& plan : plans) {
      const Segment& segment = *plan.segment;
      // In the order of the file: reads run ahead of us.
      std::vector<uint32_t> order;
      for (uint32_t ordinal = 0; ordinal < plan.fates.size(); ++ordinal)
        if (plan.fates[ordinal] != Fate::drop) order.push_back(ordinal);
      std::sort(order.begin(), order.end(),
                [&](uint32_t a, uint32_t b) { return segment.entry(a).offset < segment.entry(b).offset; });
      for (const uint32_t ordinal : order) {
        const IndexEntry& entry = segment.entry(ordinal);
        std::optional<RecordView> record = segment.checked_record(ordinal);
        // A made-up key must not spoil the kinds of the segment that everybody is copied to.
        if (record && entry.kind != kErasureKind &&
            kind_of_encoding(record->encoding) != segment.kind_name(entry.kind))
          record.reset();
        NewRecord copy{RecordType::erasure, entry.digest, {}, {}, entry.written_ns, 0};
        if (!record) {
          ++result.damaged_records;
          // What a lost record replaced stays replaced; a sound copy of it, equally old, stays visible.
          if (entry.kind != kErasureKind && copy.written_ns > INT64_MIN) --copy.written_ns;
        } else if (plan.fates[ordinal] == Fate::hide) {
          if (copy.written_ns < INT64_MAX)
            ++copy.written_ns;  // Later than what it hides, earlier than whatever is put after.
        } else {
          copy = {record->header.type, record->header.digest,     record->encoding,
                  record->value,       record->header.written_ns, plan.access[ordinal]};
        }
        result.kept_records += record.has_value();
        gathered.push_back(copy);
        gathered_bytes += record_bytes(static_cast<uint16_t>(copy.encoding.size()), copy.value.size());
        if (gathered.size() < kGatherRecords && gathered_bytes < kGatherBytes) continue;
        LMEMO_TRY(write_gathered());
        if (watch.stopped()) return Error{ErrorCode::interrupted, "stopped; nothing was lost"};
      }
      LMEMO_TRY(write_gathered());
      emptied.push_back(segments_path_ / segment.name());
      done += segment.records().size();
      watch.report({"rewrite", done, total, "bytes"});
    }
    return finish_output();
  };

  const Status copied = copy_all();
  if (writer) {
    const Path path = writer->path();
    writer.reset();
    [[maybe_unused]] const Status removed = files_.remove(path);
  }
  const Status synced = files_.sync_directory(segments_path_);
  const Lock lock(mutex_);
  refresh_locked(true);
  // The copies of what this run has touched are as protected as the originals were.
  for (const Plan& plan : plans)
    for (uint32_t ordinal = 0; ordinal < plan.fates.size(); ++ordinal) {
      Directory::Place place;
      if (plan.fates[ordinal] == Fate::keep && plan.segment->has_mark(ordinal, Segment::kTouched) &&
          directory_.find(plan.segment->entry(ordinal).digest, place))
        place.segment->set_mark(place.ordinal, Segment::kTouched);
    }
  if (!copied.ok()) return copied.error();
  if (!synced.ok()) return synced.error();  // What was unlinked may come back: nothing may rely on it.
  return result;
}

Result<std::vector<DiskStore::Plan>> DiskStore::plan_removal(const MayGo& may_go, RemovalReport& report) {
  const Lock lock(mutex_);
  LMEMO_TRY(refresh_all_locked());
  report.disk_bytes_before = disk_bytes_locked();
  std::vector<Plan> plans = plan_locked(published_locked(), may_go, 0);
  for (const Plan& plan : plans) {
    report.entries += plan.dropped_entries;
    report.stored_bytes += plan.dropped_bytes;
  }
  return plans;
}

Result<RemovalReport> DiskStore::remove_where(const MayGo& may_go, const Watch& watch) {
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush());
  const Lock maintaining(*maintenance_mutex_);
  LMEMO_ASSIGN(const std::unique_ptr<FileLock> file_lock, begin_maintenance());
  RemovalReport report;
  LMEMO_ASSIGN(std::vector<Plan> plans, plan_removal(may_go, report));
  std::erase_if(plans, [](const Plan& plan) { return plan.dropped_entries == 0 && !plan.has_copies; });
  LMEMO_TRY(rewrite(std::move(plans), watch));
  const Lock lock(mutex_);
  report.disk_bytes_after = disk_bytes_locked();
  return report;
}

Result<RemovalReport> DiskStore::prune(double older_than_seconds, const std::string& kind,
                                       const Watch& watch) {
  if (!(older_than_seconds >= 0))
    return Error{ErrorCode::invalid_argument, "prune: an age of at least 0 seconds is expected"};
  const double age_ns = std::min(older_than_seconds * kNsPerSecond, 9e18);
  const int64_t limit_ns = clock_.now_ns() - static_cast<int64_t>(age_ns);
  return remove_where(
      [&](const Segment& segment, uint32_t ordinal, int64_t accessed_ns) {
        const IndexEntry& entry = segment.entry(ordinal);
        if (!kind.empty() && segment.kind_name(entry.kind) != kind) return false;
        return std::max(accessed_ns, entry.written_ns) < limit_ns;
      },
      watch);
}

Result<RemovalReport> DiskStore::clear(const std::string& kind) {
  if (!kind.empty())
    return remove_where([&](const Segment& segment, uint32_t ordinal,
                            int64_t) { return segment.kind_name(segment.entry(ordinal).kind) == kind; },
                        {});
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush());
  const Lock maintaining(*maintenance_mutex_);
  LMEMO_ASSIGN(const std::unique_ptr<FileLock> file_lock, begin_maintenance());
  RemovalReport report;
  LMEMO_ASSIGN(std::vector<Plan> plans,
               plan_removal([](const Segment&, uint32_t, int64_t) { return true; }, report));
  // Invariant 10: whichever file goes first, what its records hid must not show. So all values go in a first step that
  // leaves erasures where something older may be hidden, and only then the rest goes.
  LMEMO_TRY(rewrite(std::move(plans), {}));
  const Lock lock(mutex_);
  LMEMO_TRY(refresh_all_locked());
  for (const SegmentPtr& segment : published_locked())
    LMEMO_TRY(files_.remove(segments_path_ / segment->name()));
  for (const std::string& name : refused_) LMEMO_TRY(files_.remove(segments_path_ / name));
  refused_.clear();
  LMEMO_TRY(files_.sync_directory(segments_path_));
  refresh_locked(true);
  report.disk_bytes_after = disk_bytes_locked();
  return report;
}

Result<RemovalReport> DiskStore::compact(const Watch& watch) {
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush());
  const Lock maintaining(*maintenance_mutex_);
  LMEMO_ASSIGN(const std::unique_ptr<FileLock> file_lock, begin_maintenance());
  RemovalReport report;
  // Invariant 10: where nobody has a private file, every record from before this moment is published, and what the
  // erasures from before it hide goes in the first step. In a second step they go themselves, so that a crash in
  // the first one never forgets an erasure before what it hides.
  int64_t before_ns = 0;
  {
    const Lock lock(mutex_);
    before_ns = next_stamp_locked();
  }
  // The directory is synced, or a private file that is gone might come back with the power.
  bool is_everything_known = !has_other_private_files() && files_.sync_directory(writing_path_).ok();
  {
    const Lock lock(mutex_);
    LMEMO_TRY(refresh_all_locked());
    report.disk_bytes_before = disk_bytes_locked();
    is_everything_known &= !has_unread_segments_;
  }
  LMEMO_TRY(drop_the_dead(watch));
  if (is_everything_known) LMEMO_TRY(forget_erasures(before_ns, watch));
  const Lock lock(mutex_);
  report.disk_bytes_after = disk_bytes_locked();
  return report;
}

Status DiskStore::drop_the_dead(const Watch& watch) {
  std::vector<Plan> plans;
  {
    const Lock lock(mutex_);
    plans = plan_locked(published_locked(), kNothingMayGo, 0);
  }
  const auto is_small = [](const Plan& plan) { return plan.segment->file_bytes() < kRewriteBytes / 2; };
  const bool has_company = std::count_if(plans.begin(), plans.end(), is_small) > 1;
  std::erase_if(plans, [&](const Plan& plan) {
    const std::span<const IndexEntry> entries = plan.segment->entries();
    const bool is_all_erasures =
        !entries.empty() && std::all_of(entries.begin(), entries.end(),
                                        [](const IndexEntry& entry) { return entry.kind == kErasureKind; });
    const bool has_dead = plan.kept_entries < entries.size();
    const bool has_gaps = static_cast<double>(plan.kept_bytes) <
                          (1 - kMinGain) * static_cast<double>(plan.segment->file_bytes());
    return is_all_erasures || !(has_dead || has_gaps || (is_small(plan) && has_company));
  });
  LMEMO_TRY(rewrite(std::move(plans), watch));
  return {};
}

Status DiskStore::forget_erasures(int64_t before_ns, const Watch& watch) {
  std::vector<Plan> plans;
  {
    const Lock lock(mutex_);
    plans = plan_locked(published_locked(), kNothingMayGo, before_ns);
  }
  std::erase_if(plans, [](const Plan& plan) { return plan.kept_entries == plan.segment->entries().size(); });
  LMEMO_TRY(rewrite(std::move(plans), watch));
  return {};
}

Result<RemovalReport> DiskStore::evict(uint64_t target_bytes, const Watch& watch) {
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush_before_eviction());
  return evict_until({}, target_bytes, true, watch);
}

Result<RemovalReport> DiskStore::evict_kind(const std::string& kind, uint64_t target_bytes,
                                            const Watch& watch) {
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush_before_eviction());
  return evict_until(kind, target_bytes, false, watch);
}

// So that this store's own entries count. A full disk does not end it: it is what an eviction is for.
Status DiskStore::flush_before_eviction() {
  Status flushed = flush();
  return flushed.ok() || flushed.error().code == ErrorCode::no_space ? Status() : flushed;
}

// Without a kind: until the segments take at most target_bytes on disk. With one: until its living entries do.
Result<RemovalReport> DiskStore::evict_until(const std::string& kind, uint64_t target_bytes,
                                             bool spares_this_run, const Watch& watch) {
  const Lock maintaining(*maintenance_mutex_);
  LMEMO_ASSIGN(const std::unique_ptr<FileLock> file_lock, begin_maintenance());
  RemovalReport report;
  std::vector<Plan> plans;
  struct Candidate {
    uint32_t minutes;
    uint32_t plan, ordinal;
    int64_t written_ns;
  };
  std::vector<Candidate> candidates;
  {
    const Lock lock(mutex_);
    LMEMO_TRY(refresh_all_locked());
    plans = plan_locked(published_locked(), kNothingMayGo, 0);
  }
  uint64_t used = 0;
  for (uint32_t p = 0; p < plans.size(); ++p) {
    const Segment& segment = *plans[p].segment;
    report.disk_bytes_before += segment.file_bytes();
    if (kind.empty()) used += segment.file_bytes();
    for (uint32_t ordinal = 0; ordinal < plans[p].fates.size(); ++ordinal) {
      const IndexEntry& entry = segment.entry(ordinal);
      if (plans[p].fates[ordinal] != Fate::keep || entry.kind == kErasureKind) continue;
      const std::string_view its_kind = segment.kind_name(entry.kind);
      if (is_reserved_kind(its_kind) || (!kind.empty() && its_kind != kind)) continue;
      if (!kind.empty()) used += stored_bytes(entry);
      if (spares_this_run && segment.has_mark(ordinal, Segment::kTouched)) continue;
      candidates.push_back({plans[p].access[ordinal], p, ordinal, entry.written_ns});
    }
  }
  // What is dead already costs nobody anything.
  const auto reclaimable = [&](const Plan& plan) {
    const uint64_t kept = plan.kept_bytes + sizeof(SegmentHeader) + sizeof(SegmentFooter);
    return plan.segment->file_bytes() > kept ? plan.segment->file_bytes() - kept : 0;
  };
  uint64_t freed = 0;
  if (kind.empty())
    for (const Plan& plan : plans) freed += reclaimable(plan);

  // Oldest first, until enough would be free.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.minutes != b.minutes ? a.minutes < b.minutes : a.written_ns < b.written_ns;
  });
  for (const Candidate& candidate : candidates) {
    if (used <= target_bytes || freed >= used - target_bytes) break;
    Plan& plan = plans[candidate.plan];
    const uint64_t bytes = stored_bytes(plan.segment->entry(candidate.ordinal));
    const bool hides = plan.segment->has_mark(candidate.ordinal, Segment::kHidesOlder);
    plan.fates[candidate.ordinal] = hides ? Fate::hide : Fate::drop;
    plan.kept_bytes -= bytes;
    --plan.kept_entries;
    plan.dropped_bytes += bytes;
    ++plan.dropped_entries;
    freed += bytes;
  }
  // One that has nothing to drop and nothing dead to speak of would only be copied.
  std::erase_if(plans, [&](const Plan& plan) {
    const bool has_gaps =
        static_cast<double>(reclaimable(plan)) > kMinGain * static_cast<double>(plan.segment->file_bytes());
    return plan.dropped_entries == 0 && !plan.has_copies && !has_gaps;
  });
  // The emptiest first, and no more of them than it takes: a segment that stays is not copied for little.
  std::sort(plans.begin(), plans.end(), [&](const Plan& a, const Plan& b) {
    if (a.has_copies != b.has_copies) return a.has_copies;
    return reclaimable(a) * (b.segment->file_bytes() + 1) > reclaimable(b) * (a.segment->file_bytes() + 1);
  });
  uint64_t gained = 0;
  size_t needed = 0;
  for (; needed < plans.size(); ++needed) {
    const Plan& plan = plans[needed];
    const uint64_t gain = kind.empty() ? reclaimable(plan) : plan.dropped_bytes;
    const bool is_enough = used <= target_bytes || gained >= used - target_bytes || gain == 0;
    if (is_enough && !plan.has_copies) break;
    gained += gain;
    report.entries += plan.dropped_entries;
    report.stored_bytes += plan.dropped_bytes;
  }
  plans.resize(needed);
  // What goes although this run has touched it no longer counts for the run.
  std::map<std::string, uint64_t> unprotected;
  for (const Plan& plan : plans)
    for (uint32_t ordinal = 0; ordinal < plan.fates.size(); ++ordinal)
      if (plan.fates[ordinal] != Fate::keep && plan.segment->has_mark(ordinal, Segment::kTouched)) {
        const IndexEntry& entry = plan.segment->entry(ordinal);
        unprotected[entry.kind == kErasureKind ? std::string()
                                               : std::string(plan.segment->kind_name(entry.kind))] +=
            stored_bytes(entry);
      }
  LMEMO_TRY(rewrite(std::move(plans), watch));
  for (const auto& [its_kind, bytes] : unprotected) forget_run_bytes(its_kind, bytes);
  evicted_.fetch_add(report.entries, std::memory_order_relaxed);
  evicted_bytes_.fetch_add(report.stored_bytes, std::memory_order_relaxed);
  const Lock lock(mutex_);
  report.disk_bytes_after = disk_bytes_locked();
  return report;
}

Status DiskStore::make_room(uint64_t for_bytes) {
  std::vector<std::pair<std::string, uint64_t>> limits;
  if (has_kind_limits_) {
    const Lock lock(mutex_);
    for (const auto& [kind, limit] : kind_limits_) limits.emplace_back(kind, limit.max_bytes);
  }
  for (const auto& [kind, limit] : limits) {
    uint64_t used = 0, pending = 0;
    {
      const Lock lock(mutex_);
      for (const SegmentPtr& segment : directory_.segments())
        for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal)
          if (is_alive(*segment, ordinal) && segment->kind_name(segment->entry(ordinal).kind) == kind)
            (segment->state() == SegmentState::pending ? pending : used) +=
                stored_bytes(segment->entry(ordinal));
    }
    // A little more than needed, so that not every batch has to make room.
    const uint64_t target = limit - limit / 8;
    if (used + pending > limit)
      LMEMO_TRY(evict_until(kind, target > pending ? target - pending : 0, true, {}));
  }
  if (options_.max_bytes == 0) return {};
  uint64_t used = 0;
  {
    const Lock lock(mutex_);
    refresh_locked(false);
    for (const auto& [name, segment] : published_) used += segment->file_bytes();
  }
  const uint64_t limit = limit_for_segments();
  if (used + for_bytes <= limit) return {};
  const uint64_t spare = for_bytes + options_.max_bytes / 16;
  LMEMO_TRY(evict_until({}, limit > spare ? limit - spare : 0, true, {}));
  return {};
}

void DiskStore::merge_small_segments() {
  std::vector<Plan> plans;
  const std::unique_lock<std::mutex> maintaining(*maintenance_mutex_, std::try_to_lock);
  if (!maintaining.owns_lock()) return;
  std::unique_ptr<FileLock> file_lock;
  {
    const Lock lock(mutex_);
    std::vector<SegmentPtr> classes[3];
    // Where batches are small, so are the segments that a merge makes: those of about that size are left alone.
    for (const auto& [name, segment] : published_)
      if (const int number = merge_class(segment->file_bytes());
          number >= 0 && segment->file_bytes() < batch_bytes_ / 2)
        classes[number].push_back(segment);
    const auto crowded = std::find_if(std::begin(classes), std::end(classes),
                                      [](const auto& segments) { return segments.size() >= kMergeCount; });
    if (crowded == std::end(classes)) return;
    // The first output stands beside all of its inputs.
    if (options_.max_bytes > 0 && disk_bytes_locked() + batch_bytes_ > options_.max_bytes) return;
    Result<std::unique_ptr<FileLock>> acquired = files_.try_lock(directory_path_ / "maintenance.lock");
    if (!acquired.ok()) return;
    file_lock = std::move(*acquired);
    if (!refresh_all_locked().ok()) return;
    std::erase_if(*crowded, [&](const SegmentPtr& segment) { return !published_.contains(segment->name()); });
    plans = plan_locked(*crowded, kNothingMayGo, 0);
  }
  // A merge that fails is tried again after the next batch.
  [[maybe_unused]] const Result<Rewritten> merged = rewrite(std::move(plans), {});
}

}  // namespace lmemo
