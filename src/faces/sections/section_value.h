// A section as bytes: version, width, count, then the ids packed. The ids begin at a multiple of 8, so that those of two or four
// bytes can be used where they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "codec/token_width.h"
#include "lmemo/bytes.h"

namespace lmemo {

struct PackedSection {
  TokenWidth width = TokenWidth::two;
  Bytes ids;
  uint64_t count() const { return ids.size() / bytes_per_token(width); }
};

// Wider than `at_least` only if an id asks for it.
std::string encode_section(std::span<const uint32_t> ids, TokenWidth at_least);
// nullopt for what encode_section() does not write.
std::optional<PackedSection> decode_section(Bytes value);

}  // namespace lmemo
