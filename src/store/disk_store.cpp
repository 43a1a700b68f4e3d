#include "store/disk_store.h"

#include <pthread.h>

#include <algorithm>

#include "base/followed.h"
#include "base/hex.h"
#include "base/own_parts.h"

namespace lmemo {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// After a failed write, how long puts are refused at once instead of failing slowly one by one.
constexpr int64_t kRefuseNs = 2 * kNsPerSecond;
// How long a file is trusted to be what it was when it was last looked at.
constexpr int64_t kTrustNs = kNsPerSecond / 100;
constexpr uint64_t kMinBatchBytes = 64 << 10;
constexpr uint64_t kLargestMergedBytes = 2 << 20;  // As disk_store_rewrite.cpp has it.

// All open stores, so that fork() finds them. A forked child must be able to find and put.
struct ForkGuard {
  std::mutex mutex;  // Guards stores.
  std::set<DiskStore*> stores;

  static ForkGuard& instance() {
    static ForkGuard* const guard = [] {
      // Their handlers first: fork() then waits for our locks before it waits for those below.
      real_file_system();
      held_things::prepare_for_fork();
      own_parts::prepare_for_fork();
      pthread_atfork([] { instance().before(); }, [] { instance().after_in_parent(); },
                     [] { instance().after_in_child(); });
      return new ForkGuard;  // Never destroyed: fork() may come late.
    }();
    return *guard;
  }
  void before() {
    mutex.lock();
    for (DiskStore* store : stores) store->before_fork();
  }
  void after_in_parent() {
    for (DiskStore* store : stores) store->after_fork_in_parent();
    mutex.unlock();
  }
  void after_in_child() {
    for (DiskStore* store : stores) store->after_fork_in_child();
    mutex.unlock();
  }
};

}  // namespace

bool is_segment_name(std::string_view name, std::string_view suffix) {
  constexpr size_t kStem = 16 + 1 + 16;
  if (name.size() != kStem + suffix.size() || name.substr(kStem) != suffix || name[16] != '-') return false;
  return name.substr(0, 16).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         name.substr(17, 16).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::unique_ptr<Store>> open_store(const Path& directory, StoreOptions options) {
  if (directory.empty())  // Its parts would land in the working directory.
    return Error{ErrorCode::invalid_argument, "the path of a store is empty; expected a directory"};
  return open_disk_store(followed(directory), std::move(options), StoreEnvironment{});
}

Result<std::unique_ptr<Store>> open_disk_store(const Path& directory, StoreOptions options,
                                               const StoreEnvironment& environment) {
  auto store = std::make_unique<DiskStore>(directory, std::move(options), environment);
  LMEMO_TRY(store->open());
  return std::unique_ptr<Store>(std::move(store));
}

DiskStore::DiskStore(Path directory, StoreOptions options, const StoreEnvironment& environment)
    : directory_path_(std::move(directory)),
      segments_path_(directory_path_ / "segments"),
      writing_path_(directory_path_ / "writing"),
      options_(std::move(options)),
      files_(*environment.files),
      clock_(*environment.clock) {
  batch_bytes_ = std::max(options_.segment_bytes, kMinBatchBytes);
  // A batch is what the limit cannot use, so it is a small part of it; but not so small that it would be merged again and again.
  if (options_.max_bytes > 0)
    batch_bytes_ = std::min(
        batch_bytes_, std::max({options_.max_bytes / 32,
                                std::min(options_.max_bytes / 16, kLargestMergedBytes), kMinBatchBytes}));
  for (const auto& [kind, limit] : options_.max_bytes_by_kind)
    if (limit > 0) kind_limits_[kind].max_bytes = limit;
  has_kind_limits_ = !kind_limits_.empty();
  ForkGuard& guard = ForkGuard::instance();
  const Lock lock(guard.mutex);
  guard.stores.insert(this);
}

DiskStore::~DiskStore() {
  if (!options_.read_only) {
    write_access_times();
    // Whoever needs to know calls flush(). What could not be published waits for the next open.
    [[maybe_unused]] const Status published = publish(true);
  }
  ForkGuard& guard = ForkGuard::instance();
  const Lock lock(guard.mutex);
  guard.stores.erase(this);
}

void DiskStore::after_fork_in_child() {
  notice_mutex_.unlock();
  mutex_.unlock();
  // Whoever held these lives on in the parent only.
  publish_mutex_.release();
  maintenance_mutex_.release();
  publish_mutex_ = std::make_unique<std::mutex>();
  maintenance_mutex_ = std::make_unique<std::mutex>();
  // The batches stay readable here, but they are the parent's to publish: its file, its offset, its lock.
  writing_ = {};
  unpublished_ = {};
}

// Invariant 1: a name that flush() relies on is itself synced. "segments" comes last: where it is, all above it is synced,
// whoever made it. Its own name is synced again before the first flush(), because its maker may have been killed.
Status DiskStore::make_directories() {
  std::vector<Path> missing;
  for (Path path = directory_path_;; path = path.parent_path()) {
    LMEMO_ASSIGN(const FileStatus status, files_.status(path.empty() ? Path(".") : path));
    if (status.type != FileType::missing) break;
    missing.push_back(path);
  }
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) LMEMO_TRY(files_.make_directory(*path));
  for (Path path = directory_path_; path.has_relative_path(); path = path.parent_path()) {
    const bool is_ours = std::find(missing.begin(), missing.end(), path) != missing.end();
    const Status synced = files_.sync_directory(path.has_parent_path() ? path.parent_path() : Path("."));
    // One that was there may be somebody else's, and closed to us; most likely it was synced long ago.
    if (!synced.ok() && is_ours) return synced;
  }
  LMEMO_TRY(files_.make_directory(writing_path_));
  LMEMO_TRY(files_.make_directory(segments_path_));
  LMEMO_TRY(files_.sync_directory(directory_path_));
  root_needs_sync_ = false;
  return {};
}

Status DiskStore::open() {
  LMEMO_ASSIGN(const FileStatus there, files_.status(segments_path_));
  if (there.type == FileType::missing) {
    if (options_.read_only || !options_.create)
      return Error{ErrorCode::io_error,
                   "no store at " + directory_path_.string() +
                       ": there is no directory \"segments\" in it; check --store or LMEMO_STORE"};
    LMEMO_TRY(make_directories());
  } else if (there.type != FileType::directory) {
    return Error{ErrorCode::incompatible, segments_path_.string() +
                                              " is not a directory (a link counts as none); "
                                              "remove it or use another store"};
  }
  if (!options_.read_only) {
    LMEMO_ASSIGN(const FileStatus writing, files_.status(writing_path_));
    if (writing.type == FileType::missing) {
      [[maybe_unused]] const Status made = files_.make_directory(writing_path_);  // The first put tells.
    } else if (writing.type != FileType::directory) {
      return Error{ErrorCode::incompatible,
                   writing_path_.string() + " is not a directory (a link counts as none)"};
    }
    if (const Status salvaged = take_over_leftovers(nullptr, nullptr); !salvaged.ok())
      notify(salvaged.error().code, "take over",
             salvaged.error().message + "; what a dead writer left waits for the next open");
  }
  const Lock lock(mutex_);
  LMEMO_TRY(files_.list(segments_path_));  // Tells why, if it cannot be listed.
  return refresh_all_locked();
}

bool DiskStore::is_alive(const Segment& segment, uint32_t ordinal) const {
  return segment.entry(ordinal).kind != kErasureKind && directory_.is_current(segment, ordinal);
}

std::optional<Hit> DiskStore::find(const Digest& digest) {
  Directory::Place place;
  const bool is_there = directory_.find(digest, place);
  if (is_there && place.is_ready && was_looked_at(*place.segment)) [[likely]] {
    place.segment->count_hit(place.kind, *place.counters);
    return Hit(place.value, place.written_ns, std::move(place.hold));
  }
  if (is_there)
    if (std::optional<Hit> hit = check_out(place)) return hit;
  if (refresh_if_due() && directory_.find(digest, place))
    if (std::optional<Hit> hit = check_out(place)) return hit;
  misses_.add();
  return std::nullopt;
}

std::optional<WritableHit> DiskStore::find_writable(const Digest& digest) {
  Directory::Place place;
  if (directory_.find(digest, place) && place.is_ready && was_looked_at(*place.segment)) [[likely]] {
    place.segment->count_hit(place.kind, *place.counters);
    OwnPart own = place.segment->own_part(place.value);
    return WritableHit{Hit(place.value, place.written_ns, std::move(place.hold)), std::move(own)};
  }
  std::optional<Hit> hit = find(digest);
  if (!hit) return std::nullopt;
  // Where the entry moved meanwhile, its new segment does not know the old bytes: then there are none.
  OwnPart own = directory_.find(digest, place) ? place.segment->own_part(hit->value()) : OwnPart();
  return WritableHit{std::move(*hit), std::move(own)};
}

// Everything that a find does but the first time. Not ready: not looked at yet, erased, damaged, or to be checked at every find.
std::optional<Hit> DiskStore::check_out(Directory::Place& place) {
  Segment& segment = *place.segment;
  const uint32_t ordinal = place.ordinal;
  if (place.kind == kErasureKind || segment.has_mark(ordinal, Segment::kDamaged)) return std::nullopt;
  const bool is_check_at_first = options_.check == CheckPolicy::first_find;
  Bytes value = place.value;
  if (!is_check_at_first || !is_unchanged(segment) || !segment.has_mark(ordinal, Segment::kChecked)) {
    const std::optional<RecordView> record = segment.checked_record(ordinal);
    if (!record) {
      note_damage(segment, ordinal);
      return std::nullopt;
    }
    segment.set_mark(ordinal, Segment::kChecked);
    value = record->value;
  }
  note_use(segment, ordinal);
  if (is_check_at_first) directory_.mark_ready(segment, ordinal);
  segment.count_hit(place.kind, *place.counters);
  return Hit(value, place.written_ns, std::move(place.hold));
}

void DiskStore::note_use(Segment& segment, uint32_t ordinal) {
  if (!segment.set_mark(ordinal, Segment::kTouched)) return;
  segment.is_touched.store(true, std::memory_order_relaxed);
  const IndexEntry& entry = segment.entry(ordinal);
  run_bytes_.fetch_add(stored_bytes(entry), std::memory_order_relaxed);
  if (!has_kind_limits_.load(std::memory_order_relaxed)) return;
  const Lock lock(mutex_);
  if (const auto limit = kind_limits_.find(segment.kind_name(entry.kind)); limit != kind_limits_.end())
    limit->second.run_bytes += stored_bytes(entry);
}

void DiskStore::limit_kind(const std::string& kind, uint64_t max_bytes) {
  const Lock lock(mutex_);
  if (max_bytes == 0) {
    kind_limits_.erase(kind);
  } else if (const auto known = kind_limits_.find(kind); known != kind_limits_.end()) {
    known->second.max_bytes = max_bytes;
  } else {
    KindLimit& limit = kind_limits_[kind] = {max_bytes, 0};
    for (const SegmentPtr& segment : directory_.segments())
      for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal)
        if (segment->has_mark(ordinal, Segment::kTouched) && is_alive(*segment, ordinal) &&
            segment->kind_name(segment->entry(ordinal).kind) == kind)
          limit.run_bytes += stored_bytes(segment->entry(ordinal));
  }
  has_kind_limits_ = !kind_limits_.empty();
}

// One batch less than the whole: what is being rewritten needs a place beside what is there.
uint64_t DiskStore::limit_for_run() const {
  return options_.max_bytes == 0 ? UINT64_MAX
                                 : options_.max_bytes - std::min(options_.max_bytes, batch_bytes_);
}

Status DiskStore::check_run_fits_locked(std::string_view kind, uint64_t kind_bytes, uint64_t all_bytes) {
  const auto complain = [&](uint64_t limit, const std::string& whose, const std::string& setting) {
    return Error{ErrorCode::no_space, "this run alone needs more than the limit of " + std::to_string(limit) +
                                          " bytes " + whose + " " + directory_path_.string() +
                                          ": what is over it is not stored; raise " + setting +
                                          " or store less"};
  };
  if (run_bytes_.load(std::memory_order_relaxed) + all_bytes > limit_for_run())
    return complain(options_.max_bytes, "of", "max_bytes");
  const auto limit = kind_limits_.find(kind);
  if (limit != kind_limits_.end() && limit->second.run_bytes + kind_bytes > limit->second.max_bytes)
    return complain(limit->second.max_bytes, "for " + std::string(kind) + " in", "its limit");
  return {};
}

bool DiskStore::was_looked_at(const Segment& segment) {
  return coarse_monotonic_ns() - segment.looked_at_ns.load(std::memory_order_relaxed) < kTrustNs;
}

// Nobody may change a published file. Where somebody did, what was checked before no longer counts.
bool DiskStore::is_unchanged(Segment& segment) {
  if (segment.state() == SegmentState::pending || was_looked_at(segment)) return true;
  const int64_t now = coarse_monotonic_ns();
  const Result<FileStatus> status = files_.status(segments_path_ / segment.name());
  if (!status.ok()) return false;
  // An unlinked file has no name left by which it could be changed.
  if (status->type != FileType::missing &&
      segment.modified_ns.exchange(status->modified_ns, std::memory_order_relaxed) != status->modified_ns) {
    segment.forget_checks();
    for (uint32_t ordinal = 0; ordinal < segment.entries().size(); ++ordinal)
      directory_.take_back_ready(segment, ordinal);
  }
  segment.looked_at_ns.store(now, std::memory_order_relaxed);
  return true;
}

bool DiskStore::look_up(const Digest& digest, Directory::Place& place) {
  for (bool looked_again = false;; looked_again = true) {
    if (directory_.find(digest, place) && place.kind != kErasureKind &&
        !place.segment->has_mark(place.ordinal, Segment::kDamaged))
      return true;
    if (looked_again || !refresh_if_due()) return false;
  }
}

bool DiskStore::contains(const Digest& digest) {
  Directory::Place place;
  return look_up(digest, place);
}

std::optional<uint64_t> DiskStore::touch(const Digest& digest) {
  Directory::Place place;
  if (!look_up(digest, place)) return std::nullopt;
  note_use(*place.segment, place.ordinal);
  return place.value.size();
}

void DiskStore::note_damage(Segment& segment, uint32_t ordinal) {
  if (!segment.set_mark(ordinal, Segment::kDamaged)) return;
  directory_.take_back_ready(segment, ordinal);
  damaged_records_.fetch_add(1, std::memory_order_relaxed);
  removals_.fetch_add(1, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
  const uint64_t offset = segment.entry(ordinal).offset;
  notify(ErrorCode::corruption, "damage in " + segment.name(),
         "segment " + segment.name() + ", record at byte " + std::to_string(offset) + ": " +
             describe_bad_record(segment.records(), segment.nonce(), offset) +
             "; it counts as a miss, run `lmemo repair`");
}

void DiskStore::notify(ErrorCode code, const std::string& cause, const std::string& message) {
  {
    const Lock lock(notice_mutex_);
    if (!notices_.insert(cause).second) return;
  }
  if (options_.on_notice) options_.on_notice({code, message});
}

int64_t DiskStore::next_stamp_locked() {
  // Never twice the same, and never before what was read: "newest wins" then also holds between machines.
  return last_stamp_ns_ = std::max(clock_.now_ns(), last_stamp_ns_ + 1);
}

int64_t DiskStore::stamp_locked(const Digest& digest) {
  const int64_t stamp = next_stamp_locked();
  Directory::Place place;
  if (stamp > newest_seen_ns_ || !directory_.find(digest, place) || place.written_ns < stamp) return stamp;
  // Later than all of them: the same may be put twice in one batch.
  if (newest_seen_ns_ < INT64_MAX) ++newest_seen_ns_;
  return newest_seen_ns_;
}

bool DiskStore::is_due_locked() const {
  if (!writing_.writer) return false;
  return writing_.writer->byte_count() >= batch_bytes_ ||
         writing_.writer->entry_count() == kMaxEntriesPerSegment ||
         static_cast<double>(coarse_monotonic_ns() - first_put_ns_) >=
             options_.publish_seconds * static_cast<double>(kNsPerSecond);
}

Status DiskStore::check_puttable(const Key& key, Bytes value) const {
  if (options_.read_only) return read_only_error();
  if (is_reserved_kind(key.kind()))
    return Error{ErrorCode::invalid_argument,
                 "kind \"" + std::string(key.kind()) + "\" is reserved: use another one"};
  if (value.size() > kMaxValueBytes)
    return Error{ErrorCode::invalid_argument,
                 "value of " + std::to_string(value.size()) + " bytes, at most 1 TiB"};
  return {};
}

Error DiskStore::read_only_error() const {
  return {ErrorCode::invalid_argument, "the store " + directory_path_.string() + " was opened read-only"};
}

Status DiskStore::refuse(const Error& error) {
  {
    const Lock lock(mutex_);
    last_failure_ = error;
    refuse_until_ns_ = coarse_monotonic_ns() + kRefuseNs;
  }
  notify(error.code, "write " + std::string(name_of(error.code)),
         error.message + "; nothing is stored for now, the work goes on");
  return error;
}

Status DiskStore::ensure_writer_locked(const NewRecord& record) {
  if (writing_.writer) return {};
  const uint64_t needed = record_bytes(static_cast<uint16_t>(record.encoding.size()), record.value.size());
  LMEMO_ASSIGN(std::unique_ptr<SegmentWriter> writer,
               begin_segment_locked(batch_bytes_ + needed + (1 << 20)));
  writing_.writer = std::move(writer);
  writing_.segment = Segment::pending(writing_.writer);
  directory_.add({writing_.segment});
  first_put_ns_ = coarse_monotonic_ns();
  return {};
}

Status DiskStore::append_locked(std::span<const NewRecord> records) {
  if (records.empty()) return {};
  LMEMO_TRY(ensure_writer_locked(records.front()));
  SegmentWriter& writer = *writing_.writer;
  const uint32_t first = writer.entry_count();
  LMEMO_TRY(writer.append(records));
  const uint32_t end = writer.entry_count();
  for (uint32_t ordinal = first; ordinal < end; ++ordinal)
    writing_.segment->set_mark(ordinal, Segment::kTouched);
  directory_.add_entries(writing_.segment, first, end);
  changes_.fetch_add(1, std::memory_order_release);
  last_failure_.reset();
  return {};
}

Status DiskStore::put(const Key& key, Bytes value) {
  const Item item{&key, value};
  return put_many({&item, 1});
}

size_t DiskStore::how_many_fit_locked(std::span<const NewRecord> records) const {
  constexpr size_t kRecordsPerWrite = 1024;
  constexpr uint64_t kBytesPerWrite = 1 << 20;
  const SegmentWriter* writer = writing_.writer.get();
  uint64_t bytes = 0;
  size_t count = 0;
  for (; count < std::min(records.size(), kRecordsPerWrite); ++count) {
    bytes += record_bytes(static_cast<uint16_t>(records[count].encoding.size()), records[count].value.size());
    if (writer && (writer->entry_count() + count >= kMaxEntriesPerSegment || !writer->has_room_for(bytes)))
      break;
    // A new batch takes at least one record, however large.
    if (!writer && count > 0 && bytes > batch_bytes_) break;
    if (count > 0 && bytes > kBytesPerWrite) break;
  }
  return count;
}

Status DiskStore::write(std::span<NewRecord> records) {
  while (!records.empty()) {
    size_t taken = 0;
    bool is_due = false, is_hurt = false;
    Status appended;
    {
      const Lock lock(mutex_);
      if (last_failure_ && coarse_monotonic_ns() < refuse_until_ns_) return *last_failure_;
      // A batch that could not be published goes first; meanwhile nothing new is begun.
      if (!unpublished_.writer) taken = how_many_fit_locked(records);
      for (NewRecord& record : records.first(taken)) record.written_ns = stamp_locked(record.digest);
      appended = append_locked(records.first(taken));
      is_hurt = !appended.ok() && writing_.writer != nullptr;
      is_due = taken == 0 || is_due_locked();
    }
    if (is_hurt) [[maybe_unused]]
      const Status rescued = publish(true);  // What went in before the disk was full.
    if (!appended.ok()) return refuse(appended.error());
    if (is_due) {
      Status published = publish(taken == 0);
      // What was appended is not lost: this process finds it, and flush() tells that it is not safe yet.
      if (!published.ok()) [[maybe_unused]]
        const Status told = refuse(published.error());
      if (!published.ok() && taken == 0) return published;
    }
    records = records.subspan(taken);
  }
  return {};
}

Status DiskStore::put_many(std::span<const Item> items) {
  Status status;
  std::vector<NewRecord> records;
  records.reserve(items.size());
  uint64_t bytes = 0;
  std::map<std::string_view, uint64_t> limited_bytes;  // Of kinds that have a limit.
  {
    const Lock lock(mutex_);
    for (const Item& item : items) {
      status = check_puttable(*item.key, item.value);
      const std::string_view encoding = text_of(item.key->encoding());
      const uint64_t cost = stored_bytes(static_cast<uint16_t>(encoding.size()), item.value.size());
      uint64_t* const of_kind = kind_limits_.empty() || !kind_limits_.contains(item.key->kind())
                                    ? nullptr
                                    : &limited_bytes[item.key->kind()];
      if (status.ok())
        status = check_run_fits_locked(item.key->kind(), cost + (of_kind ? *of_kind : 0), bytes + cost);
      if (!status.ok()) break;
      records.push_back({RecordType::value, item.key->digest(), encoding, item.value, 0, 0});
      bytes += cost;
      if (of_kind) *of_kind += cost;
    }
    // At once, so that two who put at the same time do not both take the last place.
    run_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    for (const auto& [limited, its_bytes] : limited_bytes)
      kind_limits_.find(limited)->second.run_bytes += its_bytes;
  }
  if (!status.ok() && status.error().code == ErrorCode::no_space)
    notify(ErrorCode::no_space, "run over the limit", status.error().message);

  const Status written = write(records);
  const Lock lock(mutex_);
  if (!written.ok()) {
    failed_puts_ += items.size();
    run_bytes_.fetch_sub(std::min(bytes, run_bytes_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
    for (const auto& [limited, its_bytes] : limited_bytes) forget_kind_bytes_locked(limited, its_bytes);
    return written;
  }
  puts_ += records.size();
  failed_puts_ += items.size() - records.size();
  KindCounters* counters = nullptr;
  std::string_view kind;
  for (size_t i = 0; i < records.size(); ++i) {
    // Mostly all of one kind.
    if (counters == nullptr || items[i].key->kind() != kind) {
      kind = items[i].key->kind();
      counters = &counters_[std::string(kind)];
    }
    ++counters->puts;
    counters->put_bytes += items[i].value.size();
  }
  return status;
}

Status DiskStore::flush() {
  if (options_.read_only) return {};
  Status published = publish(true);
  if (!published.ok()) return refuse(published.error());
  const Lock lock(mutex_);
  if (const uint64_t lost = std::exchange(lost_records_, 0))
    return Error{ErrorCode::io_error, std::to_string(lost) + " records that were put into " +
                                          directory_path_.string() +
                                          " are lost: the disk could not sync them, nor give them back"};
  return published;
}

Result<bool> DiskStore::erase(const Digest& digest) {
  if (options_.read_only) return read_only_error();
  if (!contains(digest)) return false;
  NewRecord record;
  record.type = RecordType::erasure;
  record.digest = digest;
  LMEMO_TRY(write({&record, 1}));
  const Lock lock(mutex_);
  ++erased_;
  return true;
}

}  // namespace lmemo
