#include "faces/sections/section_value.h"

#include <algorithm>

#include "base/little_endian.h"

namespace lmemo {
namespace {

constexpr uint8_t kVersion = 1;
struct ValueHeader {
  uint8_t version;
  uint8_t width;
  uint16_t reserved;
  uint32_t count;
};
static_assert(sizeof(ValueHeader) == 8);

}  // namespace

std::string encode_section(std::span<const uint32_t> ids, TokenWidth at_least) {
  const TokenWidth width = std::max(at_least, narrowest_width(ids));
  std::string value(sizeof(ValueHeader) + ids.size() * bytes_per_token(width), '\0');
  store_le(value.data(),
           ValueHeader{kVersion, static_cast<uint8_t>(width), 0, static_cast<uint32_t>(ids.size())});
  pack_tokens(ids, width, value.data() + sizeof(ValueHeader));
  return value;
}

std::optional<PackedSection> decode_section(Bytes value) {
  if (value.size() < sizeof(ValueHeader)) return std::nullopt;
  const auto header = load_le<ValueHeader>(value.data());
  if (header.version != kVersion || header.width < 2 || header.width > 4 || header.reserved != 0)
    return std::nullopt;
  const Bytes ids = value.subspan(sizeof(ValueHeader));
  if (ids.size() != uint64_t{header.count} * header.width) return std::nullopt;
  return PackedSection{static_cast<TokenWidth>(header.width), ids};
}

}  // namespace lmemo
