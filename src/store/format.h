// The bytes of a segment, under the names of docs/format.md. Everything is little-endian and 8-byte aligned.
//
//   segment := header record* index fields kinds footer
//
// Changing anything here changes the format: see docs/format.md, "Versions".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/little_endian.h"
#include "lmemo/bytes.h"
#include "lmemo/formats.h"
#include "lmemo/key.h"

namespace lmemo {

inline constexpr std::array<char, 8> kSegmentMagic = {'L', 'M', 'E', 'M', 'O', 'S', 'E', 'G'};
inline constexpr std::array<char, 8> kFooterMagic = {'L', 'M', 'E', 'M', 'O', 'E', 'N', 'D'};
inline constexpr uint32_t kRecordMagic = 0x4345524c;  // "LREC"

// The same for every version: a reader can always tell which version it has before it.
struct SegmentHeader {
  std::array<char, 8> magic = kSegmentMagic;
  uint32_t version = kFormatVersion;
  uint32_t reserved_a = 0;
  uint64_t nonce = 0;  // Random. Seeds every checksum, so that another segment's bytes never pass for ours.
  int64_t created_ns = 0;
  std::array<uint64_t, 3> reserved_b{};
  uint64_t checksum = 0;  // Of the bytes before it.
};
static_assert(sizeof(SegmentHeader) == 64);

enum class RecordType : uint8_t { value = 1, erasure = 2 };

// Followed by the key's encoding, zeros to a multiple of 8, the value, zeros to a multiple of 8.
// An erasure has neither encoding nor value: it hides every older record of its digest.
struct RecordHeader {
  uint64_t checksum = 0;  // Of the rest of the record, padding included; seed: nonce + offset of the record.
  uint32_t magic = kRecordMagic;
  uint16_t encoding_bytes = 0;
  RecordType type = RecordType::value;
  uint8_t reserved = 0;
  uint64_t value_bytes = 0;
  int64_t written_ns = 0;
  Digest digest;
};
static_assert(sizeof(RecordHeader) == 64);

inline constexpr uint16_t kErasureKind = 0xffff;

// Sorted by digest, each digest once.
struct IndexEntry {
  Digest digest;
  uint64_t offset = 0;  // Of the record.
  int64_t written_ns = 0;
  uint64_t value_bytes = 0;
  uint32_t accessed_minutes = 0;  // Since 1970, known when the segment was written; 0: never.
  uint16_t encoding_bytes = 0;
  uint16_t kind = 0;  // Number in the kinds block, or kErasureKind.
};
static_assert(sizeof(IndexEntry) == 64);

struct SegmentFooter {
  std::array<char, 8> magic = kFooterMagic;
  uint32_t version = kFormatVersion;
  uint32_t reserved = 0;
  uint64_t nonce = 0;
  uint64_t entry_count = 0;
  uint64_t index_offset = 0;  // Where the records end.
  uint64_t fields_offset = 0;
  uint64_t kinds_offset = 0;
  uint64_t footer_offset = 0;
  uint64_t index_checksum = 0;  // Seed: nonce.
  uint64_t fields_checksum = 0;
  uint64_t kinds_checksum = 0;
  int64_t oldest_ns = 0;
  int64_t newest_ns = 0;
  std::array<uint64_t, 2> reserved_b{};
  uint64_t checksum = 0;  // Of the bytes before it.
};
static_assert(sizeof(SegmentFooter) == 128);

inline constexpr uint64_t kMaxValueBytes = uint64_t{1} << 40;
// Bounds the index in memory while a batch grows, and the ordinals in the key table.
inline constexpr uint32_t kMaxEntriesPerSegment = 1u << 18;

constexpr uint64_t padded(uint64_t byte_count) { return (byte_count + 7) & ~uint64_t{7}; }

constexpr uint64_t value_offset_in_record(uint16_t encoding_bytes) {
  return sizeof(RecordHeader) + padded(encoding_bytes);
}
// Requires: value_bytes <= kMaxValueBytes, so that nothing overflows.
constexpr uint64_t record_bytes(uint16_t encoding_bytes, uint64_t value_bytes) {
  return value_offset_in_record(encoding_bytes) + padded(value_bytes);
}
inline uint64_t record_bytes(const IndexEntry& entry) {
  return record_bytes(entry.encoding_bytes, entry.value_bytes);
}

// What an entry costs on disk: its record, its index entry and its share of the fields block, about.
constexpr uint64_t stored_bytes(uint16_t encoding_bytes, uint64_t value_bytes) {
  return record_bytes(encoding_bytes, value_bytes) + sizeof(IndexEntry) + 64;
}
inline uint64_t stored_bytes(const IndexEntry& entry) {
  return stored_bytes(entry.encoding_bytes, entry.value_bytes);
}

inline uint64_t record_seed(uint64_t nonce, uint64_t offset) { return nonce + offset; }

}  // namespace lmemo
