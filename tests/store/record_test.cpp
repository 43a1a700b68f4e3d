#include "store/record.h"

#include <doctest/doctest.h>

#include "support/handmade_segment.h"

namespace lmemo::test {
namespace {

HandmadeSegment one_record() {
  HandmadeSegment segment;
  segment.add(*Key::of("tokens", {{"section", "a"}}), "hello");
  return segment;
}

TEST_CASE("a record lies where docs/format.md says") {
  const HandmadeSegment segment = one_record();
  CHECK(segment.bytes.size() == 0xa0);
  CHECK(segment.bytes.substr(0x48, 4) == "LREC");
  const auto record = read_record(bytes_of(segment.bytes), segment.nonce, 64);
  REQUIRE(record.has_value());
  CHECK(text_of(record->value) == "hello");
  CHECK(record->value.data() == bytes_of(segment.bytes).data() + 0x98);
  CHECK(kind_of_encoding(record->encoding) == "tokens");
  CHECK(record->byte_count == 0x60);
}

TEST_CASE("a record is none at another offset or under another nonce") {
  const HandmadeSegment segment = one_record();
  const Bytes bytes = bytes_of(segment.bytes);
  CHECK_FALSE(read_record(bytes, segment.nonce + 1, 64).has_value());
  const std::string moved = segment.bytes.substr(0, 64) + std::string(64, '\0') + segment.bytes.substr(64);
  CHECK_FALSE(read_record(bytes_of(moved), segment.nonce, 128).has_value());
  for (const uint64_t offset : {uint64_t{0}, uint64_t{8}, uint64_t{65}, uint64_t{72}, uint64_t{bytes.size()},
                                UINT64_MAX, UINT64_MAX - 7})
    CHECK_FALSE(read_record(bytes, segment.nonce, offset).has_value());
}

TEST_CASE("a record cut or flipped anywhere is none, and the reason is told") {
  const HandmadeSegment segment = one_record();
  for (size_t position = 64; position < segment.bytes.size(); ++position) {
    CHECK_FALSE(read_record(bytes_of(segment.bytes).first(position), segment.nonce, 64).has_value());
    std::string flipped = segment.bytes;
    flipped[position] = static_cast<char>(flipped[position] ^ 1);
    CHECK_FALSE(read_record(bytes_of(flipped), segment.nonce, 64).has_value());
    CHECK_FALSE(describe_bad_record(bytes_of(flipped), segment.nonce, 64).empty());
  }
}

TEST_CASE("an erasure with a value, a value without a key and an unknown type are no records") {
  const auto with = [](auto twist) {
    HandmadeSegment segment = one_record();
    auto header = load_le<RecordHeader>(segment.bytes.data() + 64);
    twist(header);
    store_le(segment.bytes.data() + 64, header);
    fix_record(segment.bytes, segment.nonce, 64);
    return read_record(bytes_of(segment.bytes), segment.nonce, 64).has_value();
  };
  CHECK(with([](RecordHeader&) {}));
  CHECK_FALSE(with([](RecordHeader& header) { header.type = RecordType::erasure; }));
  CHECK_FALSE(with([](RecordHeader& header) { header.encoding_bytes = 0; }));
  CHECK_FALSE(with([](RecordHeader& header) { header.type = static_cast<RecordType>(3); }));
  CHECK_FALSE(with([](RecordHeader& header) { header.magic = 0; }));
  CHECK(with([](RecordHeader& header) { header = {0, kRecordMagic, 0, RecordType::erasure, 0, 0, 1, {}}; }));
}

TEST_CASE("an index entry matches its record in digest, sizes, time and type") {
  const HandmadeSegment segment = one_record();
  const auto record = *read_record(bytes_of(segment.bytes), segment.nonce, 64);
  const IndexEntry entry = segment.index[0];
  CHECK(matches(entry, record));
  const auto differs = [&](auto twist) {
    IndexEntry other = entry;
    twist(other);
    return !matches(other, record);
  };
  CHECK(differs([](IndexEntry& other) { other.digest.bytes[31] ^= std::byte{1}; }));
  CHECK(differs([](IndexEntry& other) { ++other.value_bytes; }));
  CHECK(differs([](IndexEntry& other) { ++other.encoding_bytes; }));
  CHECK(differs([](IndexEntry& other) { ++other.written_ns; }));
  CHECK(differs([](IndexEntry& other) { other.kind = kErasureKind; }));
  CHECK_FALSE(differs([](IndexEntry& other) { ++other.accessed_minutes; }));
}

TEST_CASE("the kind of an encoding is never longer than the encoding") {
  CHECK(kind_of_encoding("") == "");
  CHECK(kind_of_encoding("\x05"
                         "ab") == "ab");
  CHECK(kind_of_encoding("\x02"
                         "abc") == "ab");
}

}  // namespace
}  // namespace lmemo::test
