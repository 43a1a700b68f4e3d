#include "store/directory.h"

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "support/forgetful_file_system.h"
#include "support/handmade_segment.h"

namespace lmemo::test {
namespace {

Digest digest_of(int number) { return sha256(bytes_of(std::to_string(number))); }

// A segment with these numbers as digests, all written at this time.
std::shared_ptr<Segment> segment_of(int first, int end, int64_t written_ns) {
  HandmadeSegment made;
  const Key key = *Key::of("k", {});
  for (int i = first; i < end; ++i) made.add(digest_of(i), text_of(key.encoding()), "", written_ns);
  made.sort_index();
  ForgetfulFileSystem files;
  files.set_contents("/x", made.finish());
  Result<std::shared_ptr<Segment>> segment = Segment::open(files, "/x");
  REQUIRE(segment.ok());
  REQUIRE((*segment)->state() == SegmentState::sealed);
  return *segment;
}

// The segment where a number is found; null if it is not.
const Segment* place_of(Directory& directory, int number) {
  Directory::Place place;
  if (!directory.find(digest_of(number), place)) return nullptr;
  CHECK(place.segment->entry(place.ordinal).digest == digest_of(number));
  CHECK(directory.is_current(*place.segment, place.ordinal));
  return place.segment;
}

TEST_CASE("every entry is found where it is, and nothing else is") {
  Directory directory;
  std::vector<std::shared_ptr<Segment>> segments;
  for (int i = 0; i < 100; ++i) segments.push_back(segment_of(i * 50, (i + 1) * 50, 1));
  for (const auto& segment : segments) directory.add({segment});  // Grows several times on the way.
  for (int i = 0; i < 5000; ++i) CHECK(place_of(directory, i) == segments[static_cast<size_t>(i / 50)].get());
  for (int i = 5000; i < 6000; ++i) CHECK(place_of(directory, i) == nullptr);
  CHECK(directory.crowded_out() == 0);
}

TEST_CASE("the newer record wins, whichever comes first; of equals the one added later") {
  const auto older = segment_of(0, 10, 1), newer = segment_of(5, 15, 2), copy = segment_of(5, 15, 2);
  for (const bool newer_first : {false, true}) {
    Directory directory;
    directory.add({newer_first ? newer : older});
    directory.add({newer_first ? older : newer});
    CHECK(place_of(directory, 3) == older.get());
    CHECK(place_of(directory, 7) == newer.get());
    directory.add({copy});
    CHECK(place_of(directory, 7) == copy.get());
  }
}

TEST_CASE("a record that hides an older one is marked, and so is its copy") {
  const auto older = segment_of(0, 1, 1), newer = segment_of(0, 1, 2), copy = segment_of(0, 1, 2),
             other = segment_of(1, 2, 1);
  Directory directory;
  directory.add({older, other});
  CHECK_FALSE(older->has_mark(0, Segment::kHidesOlder));
  directory.add({newer});
  CHECK(newer->has_mark(0, Segment::kHidesOlder));
  CHECK_FALSE(other->has_mark(0, Segment::kHidesOlder));
  directory.add({copy});
  CHECK(copy->has_mark(0, Segment::kHidesOlder));
}

TEST_CASE("what is removed is not found, and what it hid does not come back") {
  const auto older = segment_of(0, 10, 1), newer = segment_of(5, 15, 2);
  Directory directory;
  directory.add({older, newer});
  directory.remove(newer);
  CHECK(place_of(directory, 3) == older.get());
  CHECK(place_of(directory, 7) == nullptr);
  CHECK(place_of(directory, 12) == nullptr);
  CHECK(directory.segments().size() == 1);
  directory.remove(newer);  // Twice does no harm.
  directory.add({newer});
  CHECK(place_of(directory, 7) == newer.get());
}

TEST_CASE("a record that was marked ready is found at once, until it is replaced, removed or taken back") {
  const auto older = segment_of(0, 10, 1), newer = segment_of(5, 15, 2);
  Directory directory;
  directory.add({older});
  const auto is_ready = [&](int number) {
    Directory::Place place;
    REQUIRE(directory.find(digest_of(number), place));
    const IndexEntry& entry = place.segment->entry(place.ordinal);
    CHECK(entry.digest == digest_of(number));
    CHECK(place.written_ns == entry.written_ns);
    CHECK(place.kind == entry.kind);
    CHECK(place.value.data() == place.segment->unchecked_value(place.ordinal).data());
    CHECK(place.value.size() == entry.value_bytes);
    return place.is_ready;
  };
  for (uint32_t ordinal = 0; ordinal < 10; ++ordinal) directory.mark_ready(*older, ordinal);
  for (int i = 0; i < 10; ++i) CHECK(is_ready(i));
  directory.take_back_ready(*older, 0);
  int ready = 0;
  for (int i = 0; i < 10; ++i) ready += is_ready(i);
  CHECK(ready == 9);
  directory.add({newer});  // Replaces five of them.
  for (int i = 5; i < 10; ++i) {
    CHECK_FALSE(is_ready(i));
    CHECK(place_of(directory, i) == newer.get());
  }
  for (uint32_t ordinal = 0; ordinal < 10; ++ordinal)
    directory.mark_ready(*older, ordinal);  // In vain for those.
  for (int i = 5; i < 10; ++i) CHECK_FALSE(is_ready(i));
  for (uint32_t ordinal = 0; ordinal < 10; ++ordinal) directory.mark_ready(*newer, ordinal);
  for (int i = 0; i < 15; ++i) CHECK(is_ready(i));
  directory.remove(newer);
  for (int i = 5; i < 15; ++i) CHECK(place_of(directory, i) == nullptr);
  for (int i = 100; i < 5000; i += 50) directory.add({segment_of(i, i + 50, 1)});  // A larger table.
  for (int i = 0; i < 5; ++i) CHECK(place_of(directory, i) == older.get());
}

TEST_CASE("what the table has no room for is not found, but counts as current, so that nobody drops it") {
  constexpr int kMany = 2000;
  HandmadeSegment made;
  const Key key = *Key::of("k", {});
  for (int i = 0; i < kMany; ++i) {  // All want the same position.
    Digest digest = digest_of(i);
    std::fill_n(digest.bytes.begin(), 8, std::byte{7});
    made.add(digest, text_of(key.encoding()), "", 1);
  }
  made.sort_index();
  ForgetfulFileSystem files;
  files.set_contents("/x", made.finish());
  const std::shared_ptr<Segment> segment = *Segment::open(files, "/x");
  Directory directory;
  directory.add({segment});
  CHECK(directory.crowded_out() > 0);
  uint64_t current = 0, found = 0;
  for (uint32_t ordinal = 0; ordinal < kMany; ++ordinal) {
    Directory::Place place;
    current += directory.is_current(*segment, ordinal);
    found += directory.find(segment->entry(ordinal).digest, place);
  }
  CHECK(current == kMany);
  CHECK(found == kMany - directory.crowded_out());
}

TEST_CASE("a place keeps its segment alive after it was removed") {
  Directory directory;
  auto segment = segment_of(0, 1, 1);
  directory.add({segment});
  Directory::Place place;
  REQUIRE(directory.find(digest_of(0), place));
  directory.remove(segment);
  segment.reset();
  CHECK(place.segment->entry(0).digest == digest_of(0));
}

}  // namespace
}  // namespace lmemo::test
