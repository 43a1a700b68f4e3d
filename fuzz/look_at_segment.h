// Asks a segment everything that a store may ask it.
#pragma once

#include "bytes_in_memory.h"
#include "store/record_scan.h"
#include "store/segment.h"

namespace lmemo::fuzz {

inline void look_at_segment(Bytes bytes) {
  const auto file = std::make_shared<FuzzFile>(bytes);
  const Result<std::shared_ptr<Segment>> opened = Segment::read(file, "fuzz.seg");
  if (!opened.ok()) return;
  const Segment& segment = **opened;
  require(segment.records().size() <= bytes.size());
  const auto* begin = file->bytes().data();
  const auto is_inside = [&](const void* from, size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    return count == 0 || (first >= begin && first + count <= begin + bytes.size());
  };
  uint64_t record_total = 0;
  for (uint32_t ordinal = 0; ordinal < segment.entries().size(); ++ordinal) {
    const IndexEntry& entry = segment.entry(ordinal);
    if (ordinal > 0) require(segment.entry(ordinal - 1).digest < entry.digest);
    require(is_inside(begin + entry.offset, record_bytes(entry)));
    record_total += record_bytes(entry);
    const Bytes unchecked = segment.unchecked_value(ordinal);
    require(is_inside(unchecked.data(), unchecked.size()));
    if (const auto record = segment.checked_record(ordinal)) {
      require(record->header.digest == entry.digest);
      require(record->value.size() == entry.value_bytes);
      require(record->value.data() == unchecked.data());
    }
    if (entry.kind == kErasureKind) continue;
    require(!segment.kind_name(entry.kind).empty() || segment.state() == SegmentState::scanned);
    if (const auto encoding = segment.encoding_of(ordinal); encoding.ok()) {
      require(encoding->size() == entry.encoding_bytes);
      if (const auto key = Key::from_encoding(bytes_of(*encoding)); key.ok())
        for (const Field& field : key->fields()) require(!field.value.describe().empty());
    }
  }
  require(record_total <= bytes.size());
  uint64_t end = 0;
  scan_records(segment.records(), segment.nonce(), [&](uint64_t offset, const RecordView& record) {
    require(offset >= end && is_inside(begin + offset, record.byte_count));
    end = offset + record.byte_count;
  });
}

}  // namespace lmemo::fuzz
