#include "store/record_scan.h"

#include <doctest/doctest.h>

#include "support/handmade_segment.h"

namespace lmemo::test {
namespace {

HandmadeSegment three_records() {
  HandmadeSegment segment;
  for (const char* name : {"a", "b", "c"})
    segment.add(*Key::of("tokens", {{"name", name}}), std::string("value of ") + name);
  return segment;
}

struct Scanned {
  std::vector<uint64_t> offsets;
  RecordScan scan;
};

Scanned scan(const std::string& bytes, uint64_t nonce) {
  Scanned result;
  result.scan = scan_records(bytes_of(bytes), nonce,
                             [&](uint64_t offset, const RecordView&) { result.offsets.push_back(offset); });
  return result;
}

TEST_CASE("a scan finds the records that the index names, in their order") {
  const HandmadeSegment segment = three_records();
  const Scanned found = scan(segment.bytes, segment.nonce);
  REQUIRE(found.offsets.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(found.offsets[i] == segment.index[i].offset);
  CHECK(found.scan.bad.empty());
  CHECK(found.scan.end_of_last_record == segment.bytes.size());
}

TEST_CASE("a damaged record is one bad range, and those after it are found") {
  HandmadeSegment segment = three_records();
  segment.bytes[segment.index[1].offset + 20] = '\x7f';  // Its length is a lie now.
  const Scanned found = scan(segment.bytes, segment.nonce);
  CHECK(found.offsets == std::vector<uint64_t>{segment.index[0].offset, segment.index[2].offset});
  REQUIRE(found.scan.bad.size() == 1);
  CHECK(found.scan.bad[0].offset == segment.index[1].offset);
  CHECK(found.scan.bad[0].byte_count == segment.index[2].offset - segment.index[1].offset);
}

TEST_CASE("a segment stored inside a value does not pass for records") {
  const HandmadeSegment inner = three_records();
  HandmadeSegment outer;
  outer.nonce = inner.nonce + 1;
  outer.add(*Key::of("k", {}), inner.finish());
  outer.bytes[70] = '\x01';  // The outer record is damaged, so the scan looks inside.
  const Scanned found = scan(outer.bytes, outer.nonce);
  CHECK(found.offsets.empty());
  CHECK(found.scan.bad.size() == 1);
}

TEST_CASE("no bytes, a header alone and a ragged end are no trouble") {
  CHECK(scan("", 1).scan.records == 0);
  CHECK(scan(std::string(64, 'x'), 1).scan.bad.empty());
  const HandmadeSegment segment = three_records();
  const Scanned found = scan(segment.bytes + "ragged", segment.nonce);
  CHECK(found.offsets.size() == 3);
  REQUIRE(found.scan.bad.size() == 1);
  CHECK(found.scan.bad[0].byte_count == 6);
}

TEST_CASE("a scan stops when it is asked to") {
  const HandmadeSegment segment = three_records();
  const RecordScan stopped = scan_records(
      bytes_of(segment.bytes), segment.nonce, [](uint64_t, const RecordView&) {}, [] { return true; });
  CHECK(stopped.records == 0);
}

}  // namespace
}  // namespace lmemo::test
