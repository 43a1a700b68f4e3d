#pragma once

// Segments made by hand, with right checksums and whatever content the test wants (docs/format.md).
//
//   HandmadeSegment segment;
//   segment.add(key, "value");
//   segment.index[0].offset = 8;
//   std::string file = segment.finish([](SegmentFooter& footer) { footer.entry_count = 7; });

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "codec/checksum.h"
#include "store/fields_block.h"
#include "store/format.h"
#include "store/kinds_block.h"

namespace lmemo::test {

template <typename T>
void finish_checksum_at_end(T& value) {
  value.checksum = checksum(std::as_bytes(std::span(&value, 1)).first(sizeof(T) - sizeof(uint64_t)));
}

// Gives the record at `offset` the checksum of the bytes it claims; false if it claims more than there are.
inline bool fix_record(std::string& file, uint64_t nonce, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(RecordHeader)) return false;
  const auto header = load_le<RecordHeader>(file.data() + offset);
  if (header.value_bytes > kMaxValueBytes) return false;
  const uint64_t bytes = record_bytes(header.encoding_bytes, header.value_bytes);
  if (bytes > file.size() - offset) return false;
  const Bytes covered = bytes_of(file).subspan(offset + sizeof(uint64_t), bytes - sizeof(uint64_t));
  store_le(file.data() + offset, checksum(covered, record_seed(nonce, offset)));
  return true;
}

struct HandmadeSegment {
  uint64_t nonce = 0x1122334455667788;
  std::string bytes;  // Header and records.
  std::vector<IndexEntry> index;
  std::vector<std::string> kinds;
  std::optional<std::string> fields, kinds_block;  // Instead of the honest ones.

  HandmadeSegment() {
    SegmentHeader header;
    header.nonce = nonce;
    header.created_ns = 1'800'000'000'000'000'000;
    finish_checksum_at_end(header);
    bytes.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }

  // A record of any digest with any encoding; its index entry is the last one.
  void add(const Digest& digest, std::string_view encoding, std::string_view value,
           int64_t written_ns = 1'800'000'000'000'000'000) {
    const uint64_t offset = bytes.size();
    RecordHeader header;
    header.type = encoding.empty() ? RecordType::erasure : RecordType::value;
    header.encoding_bytes = static_cast<uint16_t>(encoding.size());
    header.value_bytes = value.size();
    header.written_ns = written_ns;
    header.digest = digest;
    bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
    bytes += encoding;
    bytes.resize(padded(bytes.size()));
    bytes += value;
    bytes.resize(padded(bytes.size()));
    fix_record(bytes, nonce, offset);
    const uint16_t kind =
        encoding.empty()
            ? kErasureKind
            : number_of_kind(kinds,
                             encoding.substr(1, std::min<size_t>(static_cast<uint8_t>(encoding[0]), 64)));
    index.push_back(
        {digest, offset, written_ns, value.size(), 0, static_cast<uint16_t>(encoding.size()), kind});
  }
  void add(const Key& key, std::string_view value, int64_t written_ns = 1'800'000'000'000'000'000) {
    add(key.digest(), text_of(key.encoding()), value, written_ns);
  }

  void sort_index() {
    std::sort(index.begin(), index.end(),
              [](const IndexEntry& a, const IndexEntry& b) { return a.digest < b.digest; });
  }

  std::string finish(const std::function<void(SegmentFooter&)>& twist = {}) const {
    std::string file = bytes;
    const std::string_view index_bytes(reinterpret_cast<const char*>(index.data()),
                                       index.size() * sizeof(IndexEntry));
    const std::string its_fields = fields ? *fields : build_fields_block(index.size(), [&](size_t ordinal) {
      const IndexEntry& entry = index[ordinal];
      const uint64_t start = entry.offset + sizeof(RecordHeader);
      return start <= bytes.size() ? std::string_view(bytes).substr(start, entry.encoding_bytes)
                                   : std::string_view();
    });
    const std::string its_kinds = kinds_block ? *kinds_block : build_kinds_block(kinds);
    SegmentFooter footer;
    footer.nonce = nonce;
    footer.entry_count = index.size();
    footer.index_offset = file.size();
    file += index_bytes;
    footer.fields_offset = file.size();
    file += its_fields;
    footer.kinds_offset = file.size();
    file += its_kinds;
    footer.footer_offset = file.size();
    footer.index_checksum = checksum(bytes_of(index_bytes), nonce);
    footer.fields_checksum = checksum(bytes_of(its_fields), nonce);
    footer.kinds_checksum = checksum(bytes_of(its_kinds), nonce);
    footer.oldest_ns = footer.newest_ns = 1'800'000'000'000'000'000;
    if (twist) twist(footer);
    finish_checksum_at_end(footer);
    file.append(reinterpret_cast<const char*>(&footer), sizeof footer);
    return file;
  }
};

// Gives every block and every record of any bytes the checksum it should have, so that what lies behind is reached.
inline void fix_all_checksums(std::string& file) {
  if (file.size() < sizeof(SegmentHeader)) return;
  auto header = load_le<SegmentHeader>(file.data());
  header.magic = kSegmentMagic;
  header.version = kFormatVersion;
  finish_checksum_at_end(header);
  store_le(file.data(), header);
  uint64_t records_end = file.size();
  if (file.size() >= sizeof(SegmentHeader) + sizeof(SegmentFooter)) {
    char* const place = file.data() + file.size() - sizeof(SegmentFooter);
    auto footer = load_le<SegmentFooter>(place);
    if (footer.magic == kFooterMagic) {
      footer.version = kFormatVersion;
      footer.nonce = header.nonce;
      footer.footer_offset = file.size() - sizeof(SegmentFooter);
      const auto block = [&](uint64_t from, uint64_t to) {
        return from <= to && to <= file.size()
                   ? checksum(bytes_of(file).subspan(from, to - from), header.nonce)
                   : 0;
      };
      if (footer.index_offset <= file.size()) records_end = footer.index_offset;
      for (uint64_t offset = sizeof header; offset < records_end && fix_record(file, header.nonce, offset);) {
        const auto record = load_le<RecordHeader>(file.data() + offset);
        offset += record_bytes(record.encoding_bytes, record.value_bytes);
      }
      footer.index_checksum = block(footer.index_offset, footer.fields_offset);
      footer.fields_checksum = block(footer.fields_offset, footer.kinds_offset);
      footer.kinds_checksum = block(footer.kinds_offset, footer.footer_offset);
      finish_checksum_at_end(footer);
      store_le(place, footer);
      return;
    }
  }
  for (uint64_t offset = sizeof header; offset < records_end && fix_record(file, header.nonce, offset);) {
    const auto record = load_le<RecordHeader>(file.data() + offset);
    offset += record_bytes(record.encoding_bytes, record.value_bytes);
  }
}

}  // namespace lmemo::test
