// How a batch becomes a segment that everyone sees, and how the segments of others are noticed.
//
// Invariant 2: a name in segments/ appears only after every byte of the file was synced.
// Invariant 3: flush() returns ok only after the directory that holds the name was synced too.
#include <sys/random.h>

#include <algorithm>
#include <thread>

#include "base/hex.h"
#include "store/disk_store.h"

namespace lmemo {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// File systems stamp directories with a clock that ticks every few milliseconds: a change within the same tick as
// our listing would go unseen, so a listing that young is not trusted (git's racy rule).
constexpr int64_t kRacyNs = kNsPerSecond / 20;
// A clock that runs ahead elsewhere may push ours ahead, but not by more than this. What is later still, is only overtaken by
// what is put in its place (stamp_locked).
constexpr int64_t kMaxFollowNs = 24 * 3600 * kNsPerSecond;
constexpr int kBeginAttempts = 100;

uint64_t random_nonce() {
  uint64_t nonce = 0;
  while (nonce == 0)
    if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) nonce = 0;
  return nonce;
}

std::string segment_name_of(const SegmentWriter& writer) { return writer.path().stem().string() + ".seg"; }

int64_t newest_in(const Segment& segment) {
  if (segment.footer()) return segment.footer()->newest_ns;
  int64_t newest_ns = 0;
  for (const IndexEntry& entry : segment.entries()) newest_ns = std::max(newest_ns, entry.written_ns);
  return newest_ns;
}

}  // namespace

Result<std::unique_ptr<SegmentWriter>> DiskStore::begin_segment_locked(uint64_t capacity) {
  for (int attempt = 1;; ++attempt) {
    const uint64_t nonce = random_nonce();
    const Path path =
        writing_path_ / (to_hex(static_cast<uint64_t>(next_stamp_locked())) + "-" + to_hex(nonce) + ".part");
    Result<std::unique_ptr<SegmentWriter>> writer =
        SegmentWriter::create(files_, path, nonce, next_stamp_locked(), capacity);
    // Whoever opens the store may take a file that was born this moment for one that a dead writer left.
    if (writer.ok() || writer.error().code != ErrorCode::busy || attempt == kBeginAttempts) return writer;
  }
}

Status DiskStore::publish(bool even_if_young) {
  const Lock publishing(*publish_mutex_);
  if (directory_needs_sync_) {
    LMEMO_TRY(files_.sync_directory(segments_path_));
    directory_needs_sync_ = false;
  }
  Batch batch;
  {
    const Lock lock(mutex_);
    if (!unpublished_.writer) {
      if (!writing_.writer || (!even_if_young && !is_due_locked())) return {};
      // From here on the batch only waits to be published; nothing new is begun before that.
      unpublished_ = std::exchange(writing_, {});
    }
    if (unpublished_.writer->is_lost()) LMEMO_TRY(renew_unpublished_locked());
    batch = unpublished_;
  }
  if (root_needs_sync_) {
    LMEMO_TRY(files_.sync_directory(directory_path_));
    root_needs_sync_ = false;
  }
  LMEMO_TRY(publish_batch(*batch.writer));
  {
    const Lock lock(mutex_);
    leave_locked(batch.segment);
    unpublished_ = {};
  }
  merge_small_segments();
  if (directory_needs_sync_)
    return Error{ErrorCode::io_error,
                 "cannot sync " + segments_path_.string() + ": what was put may not survive a power cut yet"};
  return {};
}

Status DiskStore::publish_batch(SegmentWriter& writer) {
  if (writer.entry_count() == 0) return files_.remove(writer.path());
  LMEMO_TRY(make_room(writer.projected_bytes()));
  LMEMO_TRY(writer.seal());
  LMEMO_TRY(move_into_place(writer));
  const Lock lock(mutex_);
  ++published_segments_;
  const auto loaded = published_.find(segment_name_of(writer));
  if (loaded == published_.end()) return {};
  // What this run put is protected from its own evictions.
  for (uint32_t ordinal = 0; ordinal < loaded->second->entries().size(); ++ordinal)
    loaded->second->set_mark(ordinal, Segment::kTouched);
  return {};
}

Status DiskStore::move_into_place(SegmentWriter& writer) {
  const std::string name = segment_name_of(writer);
  LMEMO_TRY(files_.rename(writer.path(), segments_path_ / name));
  writer.close();
  // The segment is in place, whatever comes of the sync; flush() reports and repeats it.
  if (!files_.sync_directory(segments_path_).ok()) directory_needs_sync_ = true;
  const Lock lock(mutex_);
  load_locked({name});
  return {};
}

// After a failed sync the file is not to be trusted, but what can still be read of it and checks out is good.
Status DiskStore::renew_unpublished_locked() {
  const Batch lost = unpublished_;
  LMEMO_ASSIGN(std::unique_ptr<SegmentWriter> writer, begin_segment_locked(lost.writer->byte_count()));
  const Path path = writer->path();
  Batch fresh;
  fresh.writer = std::move(writer);
  uint64_t unreadable = 0;
  for (uint32_t ordinal = 0; ordinal < lost.writer->entry_count(); ++ordinal) {
    const std::optional<RecordView> record = lost.segment->checked_record(ordinal);
    if (!record) {
      ++unreadable;
      continue;
    }
    const NewRecord copy{record->header.type, record->header.digest,     record->encoding,
                         record->value,       record->header.written_ns, 0};
    if (Status copied = fresh.writer->append({&copy, 1}); !copied.ok()) {
      [[maybe_unused]] const Status removed = files_.remove(path);
      return copied;
    }
  }
  fresh.segment = Segment::pending(fresh.writer);
  directory_.add({fresh.segment});
  leave_locked(lost.segment);
  unpublished_ = fresh;
  failed_puts_ += unreadable;
  lost_records_ += unreadable;
  // Else the next open tidies up.
  [[maybe_unused]] const Status removed = files_.remove(lost.writer->path());
  return {};
}

void DiskStore::write_access_times() {
  std::vector<std::pair<Key, std::vector<uint32_t>>> updates;
  {
    const Lock lock(mutex_);
    const uint32_t now = minutes_of(clock_.now_ns());
    for (const auto& [name, segment] : published_) {
      if (!segment->is_touched.exchange(false, std::memory_order_relaxed)) continue;
      Directory::Place place;
      Bytes recorded;
      const Key key = access_key(segment->nonce());
      if (directory_.find(key, place))
        if (const auto record = place.segment->checked_record(place.ordinal)) recorded = record->value;
      std::vector<uint32_t> minutes = AccessTimes(*segment, recorded).with_marks(now);
      if (!minutes.empty()) updates.emplace_back(key, std::move(minutes));
    }
  }
  for (const auto& [key, minutes] : updates) {
    NewRecord record{
        RecordType::value, key.digest(), text_of(key.encoding()), std::as_bytes(std::span(minutes)), 0, 0};
    if (!write({&record, 1}).ok()) return;
  }
}

bool DiskStore::refresh_if_due() {
  const int64_t now = coarse_monotonic_ns();
  const auto interval = static_cast<int64_t>(options_.refresh_seconds * static_cast<double>(kNsPerSecond));
  if (now - last_look_ns_.load(std::memory_order_relaxed) < interval) return false;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  return refresh_locked(false);
}

void DiskStore::refresh() {
  const Lock lock(mutex_);
  refresh_locked(false);
}

bool DiskStore::load_locked(const std::vector<std::string>& names) {
  bool is_complete = true;
  std::vector<SegmentPtr> segments;
  for (const std::string& name : names) is_complete &= open_locked(name, segments);
  directory_.add(segments);
  for (const SegmentPtr& segment : segments) published_.emplace(segment->name(), segment);
  if (!segments.empty()) changes_.fetch_add(1, std::memory_order_release);
  return is_complete;
}

bool DiskStore::open_locked(const std::string& name, std::vector<SegmentPtr>& segments) {
  if (published_.contains(name) || refused_.contains(name)) return true;
  Result<SegmentPtr> segment = Segment::open(files_, segments_path_ / name);
  if (!segment.ok()) {
    const Error& error = segment.error();
    // A file that cannot be opened now may be readable later; one that is no segment never will be.
    const Result<FileStatus> status = files_.status(segments_path_ / name);
    const bool is_foreign =
        status.ok() && status->type != FileType::regular && status->type != FileType::missing;
    const bool is_no_segment = error.code == ErrorCode::corruption || error.code == ErrorCode::incompatible;
    const bool may_work_later = !is_no_segment && !is_foreign;
    if (!may_work_later) refused_.insert(name);
    has_incompatible_segments_ |= error.code == ErrorCode::incompatible;
    if (error.code == ErrorCode::corruption) damaged_records_.fetch_add(1, std::memory_order_relaxed);
    notify(error.code, "open " + name, "segment " + name + ": " + error.message);
    return !may_work_later;
  }
  if (!*segment) return false;  // Gone between the listing and now.
  for (const Segment::Problem& problem : (*segment)->problems())
    notify(ErrorCode::corruption, "damage in " + name,
           "segment " + name + ", " + problem.block + ": " + problem.what +
               "; its sound records are used, run `lmemo repair`");
  const int64_t newest_ns = newest_in(**segment);
  if (newest_ns < clock_.now_ns() + kMaxFollowNs) last_stamp_ns_ = std::max(last_stamp_ns_, newest_ns);
  newest_seen_ns_ = std::max(newest_seen_ns_, newest_ns);
  segments.push_back(std::move(*segment));
  return true;
}

bool DiskStore::refresh_locked(bool even_if_unchanged) {
  last_look_ns_.store(coarse_monotonic_ns(), std::memory_order_relaxed);
  const Result<FileStatus> status = files_.status(segments_path_);
  if (!status.ok() || status->type != FileType::directory) return is_view_current_ = false;
  if (status->modified_ns == directory_modified_ns_ && !listing_was_racy_ && !even_if_unchanged) return false;

  bool has_changed = false, is_complete = true;
  std::vector<std::string> vanished;
  // A listing is not atomic: where a known segment is missing, its records may have moved to one that this listing
  // did not show yet. The next one does, because new segments are published before old ones go.
  for (int pass = 0; pass == 0 || (pass < 3 && (!vanished.empty() || !is_complete)); ++pass) {
    Result<std::vector<std::string>> names = files_.list(segments_path_);
    is_view_current_ = names.ok();
    if (!names.ok()) return has_changed;
    // By name, and so by age: where two records are equally old, everyone then agrees which one wins.
    std::sort(names->begin(), names->end());
    std::vector<std::string> unknown;
    for (const std::string& name : *names)
      if (is_segment_name(name, ".seg") && !published_.contains(name) && !refused_.contains(name))
        unknown.push_back(name);
    is_complete = load_locked(unknown);
    has_changed |= !unknown.empty();
    const bool is_second_look = !vanished.empty();
    vanished.clear();
    for (const auto& [name, segment] : published_)
      if (!std::binary_search(names->begin(), names->end(), name)) vanished.push_back(name);
    if (!is_second_look) continue;
    for (const std::string& name : vanished) forget_locked(name);
    has_changed |= !vanished.empty();
    break;
  }
  directory_modified_ns_ = status->modified_ns;
  listing_was_racy_ = clock_.now_ns() - status->modified_ns < kRacyNs || !is_complete;
  has_unread_segments_ = !is_complete || has_incompatible_segments_;
  return has_changed;
}

Status DiskStore::refresh_all_locked() {
  refresh_locked(true);
  if (!is_view_current_) return Error{ErrorCode::io_error, "cannot list " + segments_path_.string()};
  return {};
}

void DiskStore::forget_locked(const std::string& name) {
  const auto known = published_.find(name);
  const SegmentPtr segment = known->second;
  leave_locked(segment);
  published_.erase(known);
  removals_.fetch_add(1, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
}

void DiskStore::leave_locked(const SegmentPtr& segment) {
  for (uint16_t kind = 0; kind < segment->kinds().size(); ++kind)
    if (const uint64_t hits = segment->hits(kind)) counters_[segment->kinds()[kind]].hits += hits;
  directory_.remove(segment);
}

Status DiskStore::take_over_leftovers(std::vector<std::string>* still_there, uint64_t* removed) {
  Result<std::vector<std::string>> names = files_.list(writing_path_);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    if (!is_segment_name(name, ".part")) continue;
    const Path path = writing_path_ / name;
    Result<std::unique_ptr<WritableFile>> file = files_.take_over(path);
    if (file.ok() && !*file) continue;
    if (!file.ok()) {
      if (file.error().code != ErrorCode::busy && still_there) still_there->push_back("writing/" + name);
      continue;
    }
    LMEMO_ASSIGN(const std::shared_ptr<const MappedFile> mapping, files_.map(path));
    if (!mapping) continue;
    LMEMO_ASSIGN(const std::unique_ptr<SegmentWriter> writer,
                 SegmentWriter::resume(*file, path, mapping->bytes()));
    if (!writer || writer->entry_count() == 0) {
      // Still locked: a writer that has just begun this file sees by the lock or by the name that it is gone.
      LMEMO_TRY(files_.remove(path));
      if (removed) ++*removed;
      continue;
    }
    LMEMO_TRY(writer->seal());
    LMEMO_TRY(files_.rename(path, segments_path_ / (path.stem().string() + ".seg")));
    LMEMO_TRY(files_.sync_directory(segments_path_));
    salvaged_.fetch_add(writer->entry_count(), std::memory_order_relaxed);
  }
  return {};
}

}  // namespace lmemo
