#include "store/record.h"

#include "base/hex.h"
#include "codec/checksum.h"

namespace lmemo {
namespace {

// The header, if the lengths it claims stay inside. Written so that no sum can overflow.
std::optional<RecordHeader> bounded_header(Bytes records, uint64_t offset) {
  if (offset % 8 != 0 || offset < sizeof(SegmentHeader) || offset > records.size() ||
      records.size() - offset < sizeof(RecordHeader))
    return std::nullopt;
  const auto header = load_le<RecordHeader>(records.data() + offset);
  if (header.magic != kRecordMagic || header.value_bytes > kMaxValueBytes) return std::nullopt;
  if (record_bytes(header.encoding_bytes, header.value_bytes) > records.size() - offset) return std::nullopt;
  const bool is_value = header.type == RecordType::value && header.encoding_bytes > 0;
  const bool is_erasure =
      header.type == RecordType::erasure && header.encoding_bytes == 0 && header.value_bytes == 0;
  if (!is_value && !is_erasure) return std::nullopt;
  return header;
}

uint64_t checksum_of(Bytes records, uint64_t nonce, uint64_t offset, uint64_t byte_count) {
  return checksum(records.subspan(offset + sizeof(uint64_t), byte_count - sizeof(uint64_t)),
                  record_seed(nonce, offset));
}

}  // namespace

std::string_view kind_of_encoding(std::string_view encoding) {
  if (encoding.empty()) return {};
  return encoding.substr(1, std::min<size_t>(static_cast<uint8_t>(encoding[0]), encoding.size() - 1));
}

std::optional<RecordView> read_record(Bytes records, uint64_t nonce, uint64_t offset,
                                      uint64_t* checked_bytes) {
  const std::optional<RecordHeader> header = bounded_header(records, offset);
  if (!header) return std::nullopt;
  RecordView view{*header, {}, {}, record_bytes(header->encoding_bytes, header->value_bytes)};
  if (checked_bytes != nullptr) *checked_bytes += view.byte_count;
  if (checksum_of(records, nonce, offset, view.byte_count) != header->checksum) return std::nullopt;
  const Bytes record = records.subspan(offset, view.byte_count);
  view.encoding = text_of(record.subspan(sizeof(RecordHeader), header->encoding_bytes));
  view.value = record.subspan(value_offset_in_record(header->encoding_bytes), header->value_bytes);
  return view;
}

std::string describe_bad_record(Bytes records, uint64_t nonce, uint64_t offset) {
  const std::optional<RecordHeader> header = bounded_header(records, offset);
  if (!header) return "no record header here: magic, type or lengths are wrong";
  const uint64_t found =
      checksum_of(records, nonce, offset, record_bytes(header->encoding_bytes, header->value_bytes));
  return "record checksum " + to_hex(found) + ", expected " + to_hex(header->checksum);
}

bool matches(const IndexEntry& entry, const RecordView& record) {
  const bool is_erasure = record.header.type == RecordType::erasure;
  return entry.digest == record.header.digest && entry.value_bytes == record.header.value_bytes &&
         entry.encoding_bytes == record.header.encoding_bytes &&
         entry.written_ns == record.header.written_ns && (entry.kind == kErasureKind) == is_erasure;
}

}  // namespace lmemo
