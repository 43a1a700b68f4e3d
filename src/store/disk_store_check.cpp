// verify looks at every byte of every segment; repair keeps what is sound.
#include <algorithm>
#include <unordered_set>

#include "store/disk_store.h"
#include "store/record_scan.h"

namespace lmemo {
namespace {

bool is_known_name(std::string_view name) {
  // tokenizers: what is known about tokenizers, kept beside the entries (docs/tokenizer.md). sections: what is known about
  // source trees (docs/sections.md). metrics.db, also with -wal and -shm: one row per run. claims.lock: which batches are being
  // extracted (docs/activations.md).
  return name == "segments" || name == "writing" || name == "maintenance.lock" || name == "tokenizers" ||
         name == "sections" || name == "claims.lock" || name.starts_with("metrics.db");
}

// The record itself may be sound and still not be what the rest of the segment says it is.
std::optional<std::string> contradiction(const Segment& segment, uint32_t ordinal) {
  const std::optional<RecordView> record = segment.checked_record(ordinal);
  if (!record) return "the index points to no sound record of this entry";
  const IndexEntry& entry = segment.entry(ordinal);
  if (entry.kind == kErasureKind) return std::nullopt;
  const Result<Key> key = Key::from_encoding(bytes_of(record->encoding));
  if (!key.ok()) return key.error().message;
  if (key->digest() != entry.digest)
    return "key fields hash to " + key->digest().hex() + ", not to the entry's digest";
  if (key->kind() != segment.kind_name(entry.kind)) return "the index calls this entry of another kind";
  if (segment.fields() && segment.fields()->encoding_of(ordinal, key->kind()) != record->encoding)
    return "the fields block says something else than the record";
  return std::nullopt;
}

}  // namespace

Status DiskStore::verify_segment(const std::string& name, VerifyReport& report, uint64_t done_bytes,
                                 uint64_t total_bytes, std::set<std::string>& damaged, const Watch& watch) {
  const std::string file = "segments/" + name;
  const auto note = [&](uint64_t offset, std::string what, std::optional<Digest> digest = {}) {
    report.damage.push_back({file, offset, std::move(what), digest});
    damaged.insert(name);
  };
  Result<SegmentPtr> opened = Segment::open(files_, segments_path_ / name);
  if (!opened.ok()) {
    if (opened.error().code == ErrorCode::corruption) {
      note(0, opened.error().message);
    } else if (opened.error().code == ErrorCode::incompatible) {
      report.foreign.push_back(file + " (" + opened.error().message + ")");
    } else {
      report.unreadable.push_back(file + ": " + opened.error().message);
    }
    return {};
  }
  if (!*opened) return {};  // Evicted meanwhile.
  const Segment& segment = **opened;
  ++report.segments;
  report.bytes += segment.file_bytes();
  for (const Segment::Problem& problem : segment.problems())
    note(problem.offset, problem.block + ": " + problem.what);
  if (segment.state() == SegmentState::sealed && !segment.fields())
    note(segment.footer()->fields_offset, "fields: block does not match its checksum");

  // Every byte of the records, whether the index knows them or not.
  std::unordered_set<uint64_t> sound;
  uint64_t seen = 0;
  const RecordScan scan = scan_records(
      segment.records(), segment.nonce(),
      [&](uint64_t offset, const RecordView& record) {
        sound.insert(offset);
        if (++seen % 256 == 0)
          watch.report({"verify", done_bytes + offset + record.byte_count, total_bytes, "bytes"});
      },
      [&] { return watch.stopped(); });
  if (watch.stopped()) return Error{ErrorCode::interrupted, "verify was stopped"};
  report.records += scan.records;
  std::vector<uint32_t> lost;
  for (uint32_t ordinal = 0; ordinal < segment.entries().size(); ++ordinal) {
    const uint64_t offset = segment.entry(ordinal).offset;
    if (!sound.contains(offset)) {
      note(offset, describe_bad_record(segment.records(), segment.nonce(), offset),
           segment.entry(ordinal).digest);
      lost.push_back(ordinal);
    } else if (const auto what = contradiction(segment, ordinal)) {
      note(offset, *what, segment.entry(ordinal).digest);
    }
  }
  for (const BadRange& bad : scan.bad) {
    const bool is_named = std::any_of(lost.begin(), lost.end(), [&](uint32_t ordinal) {
      const uint64_t offset = segment.entry(ordinal).offset;
      return offset >= bad.offset && offset < bad.offset + bad.byte_count;
    });
    if (!is_named) note(bad.offset, std::to_string(bad.byte_count) + " bytes that are no sound record");
  }
  return {};
}

Result<VerifyReport> DiskStore::verify_files(std::set<std::string>& damaged, const Watch& watch) {
  VerifyReport report;
  LMEMO_ASSIGN(std::vector<std::string> names, files_.list(segments_path_));
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string, uint64_t>> segments;
  uint64_t total = 0;
  for (const std::string& name : names) {
    LMEMO_ASSIGN(const FileStatus status, files_.status(segments_path_ / name));
    if (!is_segment_name(name, ".seg") || status.type != FileType::regular) {
      report.foreign.push_back("segments/" + name);
      continue;
    }
    segments.emplace_back(name, status.byte_count);
    total += status.byte_count;
  }
  uint64_t done = 0;
  for (const auto& [name, byte_count] : segments) {
    LMEMO_TRY(verify_segment(name, report, done, total, damaged, watch));
    done += byte_count;
    watch.report({"verify", done, total, "bytes"});
  }

  const Result<std::vector<std::string>> writing = files_.list(writing_path_);
  for (const std::string& name : writing.ok() ? *writing : std::vector<std::string>{}) {
    const Result<FileStatus> status = files_.status(writing_path_ / name);
    const bool is_no_file =
        status.ok() && status->type != FileType::regular && status->type != FileType::missing;
    if (!is_segment_name(name, ".part") || is_no_file) {
      report.foreign.push_back("writing/" + name);
      continue;
    }
    const Result<std::unique_ptr<WritableFile>> file = files_.take_over(writing_path_ / name);
    const bool is_live = !file.ok() && file.error().code == ErrorCode::busy;
    const bool is_gone = file.ok() && !*file;
    if (!is_live && !is_gone) report.leftovers.push_back("writing/" + name);
  }
  LMEMO_ASSIGN(const std::vector<std::string> root, files_.list(directory_path_));
  for (const std::string& name : root)
    if (!is_known_name(name)) report.foreign.push_back(name);
  return report;
}

Result<VerifyReport> DiskStore::verify(const Watch& watch) {
  std::set<std::string> damaged;
  return verify_files(damaged, watch);
}

Result<RepairReport> DiskStore::repair(const Watch& watch) {
  if (options_.read_only) return read_only_error();
  LMEMO_TRY(flush());
  RepairReport report;
  std::set<std::string> damaged;
  LMEMO_ASSIGN(report.found, verify_files(damaged, watch));
  LMEMO_TRY(take_over_leftovers(nullptr, &report.removed_files));

  const Lock maintaining(*maintenance_mutex_);
  LMEMO_ASSIGN(const std::unique_ptr<FileLock> file_lock, lock_maintenance());
  std::vector<Plan> plans;
  for (const std::string& name : damaged) {
    Result<SegmentPtr> opened = Segment::open(files_, segments_path_ / name);
    if (opened.ok() && !*opened) continue;
    if (!opened.ok() && opened.error().code != ErrorCode::corruption) return opened.error();
    ++report.removed_files;
    if (!opened.ok()) {
      // Neither end can be read, so no record can be checked.
      LMEMO_TRY(files_.remove(segments_path_ / name));
      continue;
    }
    const Lock lock(mutex_);
    Plan plan = keep_all_locked(*opened);
    for (uint32_t ordinal = 0; ordinal < plan.fates.size(); ++ordinal) {
      // What is not sound, rewrite() leaves out. What is sound but not what it says it is, goes here.
      const std::optional<RecordView> record = (*opened)->checked_record(ordinal);
      if (!record || record->header.type == RecordType::erasure) continue;
      const Result<Key> key = Key::from_encoding(bytes_of(record->encoding));
      // The fields block alone may be damaged: then the record, which has its own copy, stays.
      const bool is_good = key.ok() && key->digest() == record->header.digest;
      if (!is_good) plan.fates[ordinal] = Fate::drop, ++report.lost_records;
    }
    plans.push_back(std::move(plan));
  }
  LMEMO_ASSIGN(const Rewritten rewritten, rewrite(std::move(plans), watch));
  report.kept_records = rewritten.kept_records;
  report.lost_records += rewritten.damaged_records;
  {
    const Lock lock(mutex_);
    refused_.clear();
    refresh_locked(true);
  }
  return report;
}

}  // namespace lmemo
