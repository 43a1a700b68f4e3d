// Any bytes as a record behind a segment header, as they are and with the checksum made right.
#include "bytes_in_memory.h"
#include "store/record_scan.h"
#include "support/handmade_segment.h"

namespace {

void look_at(const std::string& file, uint64_t nonce) {
  using namespace lmemo;
  const fuzz::FuzzFile copy(bytes_of(file));
  const Bytes bytes = copy.bytes();
  for (uint64_t offset = 0; offset <= bytes.size() + 8; offset += 8) {
    if (const auto record = read_record(bytes, nonce, offset)) {
      fuzz::require(offset >= sizeof(SegmentHeader) && record->byte_count <= bytes.size() - offset);
      fuzz::require(record->byte_count % 8 == 0 && record->value.size() <= record->byte_count);
      fuzz::require((record->header.type == RecordType::erasure) == record->encoding.empty());
    } else {
      fuzz::require(!describe_bad_record(bytes, nonce, offset).empty());
    }
  }
  uint64_t covered = sizeof(SegmentHeader);
  const RecordScan scan =
      scan_records(bytes, nonce, [&](uint64_t, const RecordView& r) { covered += r.byte_count; });
  for (const BadRange& bad : scan.bad) covered += bad.byte_count;
  fuzz::require(bytes.size() < sizeof(SegmentHeader) ||
                covered == bytes.size());  // Every byte is one or the other.
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  constexpr uint64_t kNonce = 42;
  std::string file(sizeof(lmemo::SegmentHeader), '\0');
  file.append(reinterpret_cast<const char*>(data), size);
  look_at(file, kNonce);
  for (uint64_t offset = sizeof(lmemo::SegmentHeader); lmemo::test::fix_record(file, kNonce, offset);) {
    const auto header = lmemo::load_le<lmemo::RecordHeader>(file.data() + offset);
    offset += lmemo::record_bytes(header.encoding_bytes, header.value_bytes);
  }
  look_at(file, kNonce);
  return 0;
}
