#include "store/segment_writer.h"

#include <doctest/doctest.h>

#include "store/segment.h"
#include "support/faulty_file_system.h"
#include "support/forgetful_file_system.h"

namespace lmemo::test {
namespace {

const Path kPart = "/0000000000000001-0000000000000007.part";

std::unique_ptr<SegmentWriter> begin(FileSystem& files) {
  Result<std::unique_ptr<SegmentWriter>> writer = SegmentWriter::create(files, kPart, 7, 1000, 1 << 16);
  REQUIRE(writer.ok());
  return std::move(*writer);
}

Status append(SegmentWriter& writer, const std::string& name, const std::string& value, int64_t written_ns) {
  const Key key = *Key::of("tokens", {{"name", name}});
  const NewRecord record{RecordType::value, key.digest(), text_of(key.encoding()),
                         bytes_of(value),   written_ns,   0};
  return writer.append({&record, 1});
}

std::shared_ptr<Segment> read_back(FileSystem& files) {
  Result<std::shared_ptr<Segment>> segment = Segment::open(files, kPart);
  REQUIRE(segment.ok());
  return *segment;
}

TEST_CASE("what is written and sealed is a sound segment with the newest of each digest") {
  ForgetfulFileSystem files;
  const auto writer = begin(files);
  REQUIRE(append(*writer, "a", "old", 1).ok());
  REQUIRE(append(*writer, "b", "", 2).ok());
  REQUIRE(append(*writer, "a", "new", 3).ok());
  CHECK(writer->entry_count() == 3);
  REQUIRE(writer->seal().ok());
  const auto segment = read_back(files);
  CHECK(segment->state() == SegmentState::sealed);
  CHECK(segment->problems().empty());
  REQUIRE(segment->entries().size() == 2);
  for (uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    const auto record = segment->checked_record(ordinal);
    REQUIRE(record.has_value());
    CHECK(text_of(record->value) == (record->header.written_ns == 3 ? "new" : ""));
  }
  CHECK(segment->footer()->oldest_ns == 2);
  CHECK(segment->footer()->newest_ns == 3);
  // Promise 2: every byte is synced.
  const auto image = files.after_power_cut({PowerCut::Names::kept, PowerCut::Data::lost, 0});
  CHECK(image->contents(kPart) == files.contents(kPart));
}

TEST_CASE("a failed append leaves the file as it was, and the next one works") {
  ForgetfulFileSystem disk;
  FaultyFileSystem files(disk);
  const auto writer = begin(files);
  REQUIRE(append(*writer, "a", "value", 1).ok());
  const std::string before = disk.contents(kPart);
  files.fail_from(files.calls() + 1, Fault::short_write, true);
  CHECK(append(*writer, "b", "value", 2).error().code == ErrorCode::no_space);
  CHECK(disk.contents(kPart) == before);
  CHECK_FALSE(writer->is_broken());
  REQUIRE(append(*writer, "c", "value", 3).ok());
  REQUIRE(writer->seal().ok());
  CHECK(read_back(disk)->entries().size() == 2);
}

TEST_CASE("a file whose end could not be cut off is cut before anything else is written") {
  ForgetfulFileSystem disk;
  FaultyFileSystem files(disk);
  const auto writer = begin(files);
  files.fail_from(files.calls() + 1, Fault::short_write, false);
  CHECK_FALSE(append(*writer, "a", "value", 1).ok());
  CHECK(writer->is_broken());
  CHECK_FALSE(append(*writer, "a", "value", 2).ok());
  files.heal();
  REQUIRE(append(*writer, "a", "value", 3).ok());
  CHECK_FALSE(writer->is_broken());
  REQUIRE(writer->seal().ok());
  CHECK(read_back(disk)->problems().empty());
  CHECK(read_back(disk)->checked_record(0).has_value());
}

TEST_CASE("after a failed sync the file is lost, after a failed write it can be sealed again") {
  ForgetfulFileSystem disk;
  FaultyFileSystem files(disk);
  const auto writer = begin(files);
  REQUIRE(append(*writer, "a", "value", 1).ok());
  files.fail_from(files.calls() + 1, Fault::short_write, true);
  CHECK_FALSE(writer->seal().ok());
  CHECK_FALSE(writer->is_lost());
  files.fail_from(files.calls() + 2, Fault::io, true);
  CHECK_FALSE(writer->seal().ok());
  CHECK(writer->is_lost());
}

TEST_CASE("a writer that cannot begin leaves no file") {
  for (const uint64_t call : {1, 2, 3}) {
    ForgetfulFileSystem disk;
    FaultyFileSystem files(disk);
    files.fail_from(call, Fault::no_space, true);
    CHECK_FALSE(SegmentWriter::create(files, kPart, 7, 1000, 1 << 16).ok());
    CHECK(disk.files().empty());
  }
}

TEST_CASE("a resumed file keeps its sound records and loses its torn tail") {
  ForgetfulFileSystem files;
  {
    const auto writer = begin(files);
    REQUIRE(append(*writer, "a", "value", 1).ok());
    REQUIRE(append(*writer, "b", "value", 2).ok());
  }
  const std::string whole = files.contents(kPart);
  files.set_contents(kPart, whole + "torn");
  auto file = files.take_over(kPart);
  const auto mapping = *files.map(kPart);
  const auto writer = SegmentWriter::resume(*file, kPart, mapping->bytes());
  REQUIRE(writer.ok());
  CHECK((*writer)->entry_count() == 2);
  CHECK(files.contents(kPart) == whole);
  REQUIRE((*writer)->seal().ok());
  CHECK(read_back(files)->state() == SegmentState::sealed);
}

TEST_CASE("what is no segment is not resumed and not touched") {
  ForgetfulFileSystem files;
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(200, 'x')}) {
    files.set_contents(kPart, bytes);
    auto file = files.take_over(kPart);
    const auto writer = SegmentWriter::resume(*file, kPart, bytes_of(bytes));
    REQUIRE(writer.ok());
    CHECK(*writer == nullptr);
    CHECK(files.contents(kPart) == bytes);
  }
}

}  // namespace
}  // namespace lmemo::test
