#include "store/segment.h"

#include <doctest/doctest.h>

#include "support/forgetful_file_system.h"
#include "support/handmade_segment.h"

namespace lmemo::test {
namespace {

const Path kFile = "/0000000000000001-1122334455667788.seg";

Result<std::shared_ptr<Segment>> read(const std::string& bytes) {
  ForgetfulFileSystem files;
  files.set_contents(kFile, bytes);
  return Segment::open(files, kFile);
}

HandmadeSegment two_entries() {
  HandmadeSegment segment;
  segment.add(*Key::of("tokens", {{"name", "a"}}), "value of a");
  segment.add(*Key::of("forward", {{"name", "b"}}), "value of b");
  segment.sort_index();
  return segment;
}

TEST_CASE("a sound segment shows its entries, kinds and keys") {
  const auto segment = *read(two_entries().finish());
  CHECK(segment->state() == SegmentState::sealed);
  REQUIRE(segment->entries().size() == 2);
  for (uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    const Key key = *Key::from_encoding(bytes_of(*segment->encoding_of(ordinal)));
    CHECK(key.digest() == segment->entry(ordinal).digest);
    CHECK(key.kind() == segment->kind_name(segment->entry(ordinal).kind));
    CHECK(text_of(segment->checked_record(ordinal)->value).starts_with("value of "));
    CHECK(segment->unchecked_value(ordinal).data() == segment->checked_record(ordinal)->value.data());
  }
}

TEST_CASE("without header, footer, index or kinds the records are found by a scan") {
  const HandmadeSegment made = two_entries();
  const std::string whole = made.finish();
  const size_t kinds = whole.size() - 128 - build_kinds_block(made.kinds).size();
  for (const size_t position : {whole.size() - 1, made.bytes.size(), kinds}) {
    std::string damaged = whole;
    damaged[position] = static_cast<char>(damaged[position] ^ 1);
    const auto segment = *read(damaged);
    CHECK(segment->state() == SegmentState::scanned);
    CHECK(segment->entries().size() == 2);
    CHECK(segment->problems().size() == 1);
    CHECK(segment->encoding_of(0).ok());
  }
  std::string headless = whole;
  headless[20] = static_cast<char>(headless[20] ^ 1);
  CHECK((*read(headless))->entries().size() == 2);
  CHECK((*read(headless))->problems().size() == 1);
}

TEST_CASE("a damaged fields block is replaced by what the records say") {
  const HandmadeSegment made = two_entries();
  std::string damaged = made.finish();
  damaged[made.bytes.size() + 2 * 64 + 8] ^= 1;
  const auto segment = *read(damaged);
  CHECK(segment->state() == SegmentState::sealed);
  CHECK_FALSE(segment->fields().has_value());
  CHECK(segment->encoding_of(0).ok());
}

TEST_CASE("another version is incompatible, other bytes are damage, no file is none") {
  HandmadeSegment made = two_entries();
  auto header = load_le<SegmentHeader>(made.bytes.data());
  header.version = 2;
  finish_checksum_at_end(header);
  store_le(made.bytes.data(), header);
  CHECK(read(made.finish()).error().code == ErrorCode::incompatible);
  for (const std::string& bytes : {std::string(), std::string("x"), std::string(500, 'x')})
    CHECK(read(bytes).error().code == ErrorCode::corruption);
  ForgetfulFileSystem files;
  const auto missing = Segment::open(files, "/nothing");
  REQUIRE(missing.ok());
  CHECK(*missing == nullptr);
}

TEST_CASE("marks are set once and stay") {
  const auto segment = *read(two_entries().finish());
  CHECK_FALSE(segment->has_mark(0, Segment::kTouched));
  CHECK(segment->set_mark(0, Segment::kTouched));
  CHECK_FALSE(segment->set_mark(0, Segment::kTouched));
  CHECK(segment->set_mark(0, Segment::kDamaged));
  CHECK(segment->has_mark(0, Segment::kTouched));
  CHECK_FALSE(segment->has_mark(1, Segment::kTouched));
}

TEST_CASE("hits are counted by kind, also those beyond the first kinds") {
  const auto segment = *read(two_entries().finish());
  segment->thing = held_things::add(segment);
  segment->count_hit(1, thread_lanes::lane().counters(segment->thing));
  CHECK(segment->hits(1) == 1);
  CHECK(segment->hits(0) == 0);
  held_things::let_go(segment->thing);
}

}  // namespace
}  // namespace lmemo::test
