// What stats(), scan(), verify() and the others return. A list: one class after the other.

#include "reports.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "record_class.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

nb::object optional_digest(const std::optional<Digest>& digest) {
  return digest ? bytes_to_python(digest->bytes) : nb::none();
}

nb::object optional_value(const std::optional<FieldValue>& value) {
  return value ? field_value_to_python(*value) : nb::none();
}

void init_stats(nb::module_& m) {
  RecordClass<KindStats>(m, "KindStats", "What is stored under one kind.")
      .field("entries", &KindStats::entries, "Entries that can be found.")
      .field("value_bytes", &KindStats::value_bytes, "Bytes of their values.")
      .field("stored_bytes", &KindStats::stored_bytes, "With keys, fields and checksums.")
      .field("max_bytes", &KindStats::max_bytes,
             "The limit of this kind; 0: only the limit of the whole store.");

  RecordClass<KindCounters>(m, "KindCounters", "What this object did with one kind.")
      .field("hits", &KindCounters::hits, "Finds that found something.")
      .field("puts", &KindCounters::puts, "Entries put.")
      .field("put_bytes", &KindCounters::put_bytes, "Bytes of their values.");

  RecordClass<StoreStats>(m, "StoreStats",
                          "What a store holds, and what this object did since it was opened.")
      .field("entries", &StoreStats::entries, "Entries that can be found.")
      .field("live_bytes", &StoreStats::live_bytes, "About what compact() would leave.")
      .field("disk_bytes", &StoreStats::disk_bytes, "What the directory takes.")
      .field("max_bytes", &StoreStats::max_bytes, "The limit; 0: none.")
      .field("segments", &StoreStats::segments, "Files that hold entries.")
      .computed(
          "oldest", [](const StoreStats& self) { return time_to_python(self.oldest_ns); },
          "def oldest(self) -> datetime.datetime | None", "When the oldest entry was put (UTC).")
      .computed(
          "newest", [](const StoreStats& self) { return time_to_python(self.newest_ns); },
          "def newest(self) -> datetime.datetime | None", "When the newest entry was put (UTC).")
      .field("kinds", &StoreStats::kinds, "What is stored, by kind.")
      .field("hits", &StoreStats::hits, "Finds that found something.")
      .field("misses", &StoreStats::misses, "Finds that did not.")
      .field("puts", &StoreStats::puts, "Entries put.")
      .field("failed_puts", &StoreStats::failed_puts, "Lost chances: full disk, limit, permissions.")
      .field("erased", &StoreStats::erased, "Entries erased by name.")
      .field("evicted", &StoreStats::evicted, "Entries that went to make room.")
      .field("evicted_bytes", &StoreStats::evicted_bytes, "Their size.")
      .field("damaged_records", &StoreStats::damaged_records, "Found damaged on the way; each was a miss.")
      .field("published_segments", &StoreStats::published_segments, "Files made visible to everyone.")
      .field("salvaged_records", &StoreStats::salvaged_records, "Taken over from writers that died.")
      .field("counters", &StoreStats::counters, "What this object did, by kind.");
}

void init_entries(nb::module_& m) {
  RecordClass<Entry>(m, "Entry", "One entry as scan() shows it; its value is not read.")
      .computed(
          "digest", [](const Entry& self) { return bytes_to_python(self.digest.bytes); },
          "def digest(self) -> bytes", "The digest of its key.")
      .field("kind", &Entry::kind, "The namespace it is in.")
      .computed(
          "key", [](const Entry& self) { return nb::cast(self.key); }, "def key(self) -> Key | None",
          "Its key with all fields; None if they are damaged.")
      .field("value_bytes", &Entry::value_bytes, "Length of its value.")
      .field("stored_bytes", &Entry::stored_bytes, "With key, fields and checksum.")
      .computed(
          "written", [](const Entry& self) { return time_to_python(self.written_ns); },
          "def written(self) -> datetime.datetime", "When it was put (UTC).")
      .computed(
          "accessed", [](const Entry& self) { return time_to_python(self.accessed_ns); },
          "def accessed(self) -> datetime.datetime | None",
          "When it was last found, to about an hour (UTC).");

  RecordClass<FieldDifference>(m, "FieldDifference", "A field in which a request and an entry differ.")
      .field("name", &FieldDifference::name, "Its name.")
      .computed(
          "in_request", [](const FieldDifference& self) { return self.asked.has_value(); },
          "def in_request(self) -> bool", "The request has this field.")
      .computed(
          "asked", [](const FieldDifference& self) { return optional_value(self.asked); },
          "def asked(self) -> FieldValue", "Its value in the request.")
      .computed(
          "in_entry", [](const FieldDifference& self) { return self.stored.has_value(); },
          "def in_entry(self) -> bool", "The entry has this field.")
      .computed(
          "stored", [](const FieldDifference& self) { return optional_value(self.stored); },
          "def stored(self) -> FieldValue", "Its value in the entry.");

  RecordClass<Explanation> explanation(m, "Explanation",
                                       "Why a request missed: the nearest entry, and where it differs.");
  explanation.field("is_hit", &Explanation::is_hit, "The entry is there.")
      .field("candidates", &Explanation::candidates, "Entries of the same kind.")
      .field("nearest", &Explanation::nearest, "The key that shares the most fields with the request.")
      .computed(
          "nearest_written", [](const Explanation& self) { return time_to_python(self.nearest_written_ns); },
          "def nearest_written(self) -> datetime.datetime | None", "When that entry was put (UTC).")
      .field("differing", &Explanation::differing, "The fields it does not share.");
  explanation.itself().def(
      "__str__", [](const Explanation& self) { return text_to_python(self.describe()); },
      nb::sig("def __str__(self) -> str"), "One line for people.");
}

void init_upkeep(nb::module_& m) {
  RecordClass<ProgressRecord>(m, "Progress", "How far long work is: what a progress callback gets.")
      .field("phase", &ProgressRecord::phase, "\"verify\", \"compact\", …")
      .field("done", &ProgressRecord::done, "Units done.")
      .field("total", &ProgressRecord::total, "Units to do; 0: not known.")
      .field("unit", &ProgressRecord::unit, "\"bytes\", \"entries\", …");

  RecordClass<Damage>(m, "Damage", "One damaged place.")
      .field("file", &Damage::file, "The file, relative to the store.")
      .field("offset", &Damage::offset, "The byte in it.")
      .field("what", &Damage::what, "What was found, and what was expected.")
      .computed(
          "digest", [](const Damage& self) { return optional_digest(self.digest); },
          "def digest(self) -> bytes | None", "The key of the entry that is lost, if it is known.");

  RecordClass<VerifyReport>(m, "VerifyReport", "What verify() found.")
      .field("segments", &VerifyReport::segments, "Segments read.")
      .field("records", &VerifyReport::records, "Records read.")
      .field("bytes", &VerifyReport::bytes, "Bytes read.")
      .field("damage", &VerifyReport::damage, "What is damaged.")
      .field("unreadable", &VerifyReport::unreadable,
             "Files that could not be opened, and why: perhaps sound; left alone.")
      .field("leftovers", &VerifyReport::leftovers,
             "Files of writers that died; repair() takes them over or removes them.")
      .field("foreign", &VerifyReport::foreign, "Files that lmemo did not write; left alone.")
      .computed("is_clean", &VerifyReport::is_clean, "def is_clean(self) -> bool",
                "No damage, nothing unreadable and no leftovers.");

  RecordClass<RepairReport>(m, "RepairReport", "What repair() did.")
      .field("found", &RepairReport::found, "What was wrong before.")
      .field("kept_records", &RepairReport::kept_records, "Good records of the files that were rewritten.")
      .field("lost_records", &RepairReport::lost_records, "Damaged ones; they will be computed again.")
      .field("removed_files", &RepairReport::removed_files, "Files removed.");

  RecordClass<RemovalReport>(m, "RemovalReport", "What a call removed, and what that gave back to the disk.")
      .field("entries", &RemovalReport::entries, "Entries removed.")
      .field("stored_bytes", &RemovalReport::stored_bytes, "Their size.")
      .field("disk_bytes_before", &RemovalReport::disk_bytes_before, "What the directory took before.")
      .field("disk_bytes_after", &RemovalReport::disk_bytes_after, "What it takes now.");
}

}  // namespace

void init_reports(nb::module_& m) {
  init_stats(m);
  init_entries(m);
  init_upkeep(m);
}

}  // namespace lmemo::python
