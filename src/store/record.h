// One record: checked before anybody sees a byte of it.
#pragma once

#include <optional>
#include <string>

#include "store/format.h"

namespace lmemo {

// The kind at the front of a key's encoding; empty if there is none.
std::string_view kind_of_encoding(std::string_view encoding);

// The record at `offset`, if its lengths stay within `records` and its checksum is right. `records` starts with the
// segment header: offsets are offsets in the file.
struct RecordView {
  RecordHeader header;
  std::string_view encoding;
  Bytes value;
  uint64_t byte_count = 0;
};
// `checked_bytes`, if given, grows by what had to be read to find out.
std::optional<RecordView> read_record(Bytes records, uint64_t nonce, uint64_t offset,
                                      uint64_t* checked_bytes = nullptr);

// Also says what is wrong; for people.
std::string describe_bad_record(Bytes records, uint64_t nonce, uint64_t offset);

// True if the index entry and the sound record it points to say the same. Digest, lengths, time and type count.
bool matches(const IndexEntry& entry, const RecordView& record);

}  // namespace lmemo
