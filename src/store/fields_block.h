// The fields of every entry of a segment, side by side, so that a scan by field, `explain` and the like read this block
// and not one page per record. Each distinct field is stored once.
//
//   fields := u32 distinct, u32 reference_count, u32 starts[distinct + 1], u32 rows[entries + 1],
//             u32 references[reference_count], bytes
//
// `starts` are offsets into `bytes`; entry i has the fields references[rows[i] … rows[i+1]), in the order of its key.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/format.h"

namespace lmemo {

// Splits a sound key encoding into its encoded fields. False if it is not one.
bool split_encoding(std::string_view encoding, std::vector<std::string_view>& fields);
// The parts of an encoded field; nullopt if it is none. `type` as in docs/format.md, "Keys".
struct EncodedField {
  std::string_view name;
  uint8_t type = 0;
  std::string_view value;
};
std::optional<EncodedField> parts_of_field(std::string_view encoded_field);
// The digest of a key with this encoding, for whoever makes sound encodings by himself (src/store/key.cpp).
Digest digest_of_key(std::string_view encoding);
// The encoding of one field, as it stands in a key.
std::string encode_field(const Field& field);

std::string build_fields_block(size_t entry_count,
                               const std::function<std::string_view(size_t ordinal)>& encoding_of);

class FieldsBlock {
 public:
  // nullopt if any offset points outside; afterwards nothing can.
  static std::optional<FieldsBlock> parse(Bytes block, uint64_t entry_count);

  std::string encoding_of(uint64_t ordinal, std::string_view kind) const;
  // At most kMaxFields of them: views into the block.
  void fields_of(uint64_t ordinal, std::vector<std::string_view>& fields) const;
  // Their numbers, as in number_of().
  void numbers_of(uint64_t ordinal, std::vector<uint32_t>& numbers) const;
  // The number of the distinct field with these bytes.
  std::optional<uint32_t> number_of(std::string_view encoded_field) const;
  bool has(uint64_t ordinal, uint32_t number) const;

 private:
  FieldsBlock() = default;
  uint32_t at(uint64_t position) const { return load_le<uint32_t>(words_ + position * sizeof(uint32_t)); }
  std::string_view field(uint32_t number) const;

  const std::byte* words_ = nullptr;  // From `starts` on.
  uint32_t distinct_ = 0;
  uint64_t rows_ = 0;  // Positions in words_.
  uint64_t references_ = 0;
  std::string_view bytes_;
};

}  // namespace lmemo
