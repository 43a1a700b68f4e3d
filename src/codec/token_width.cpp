#include "codec/token_width.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"

namespace lmemo {

TokenWidth narrowest_width(std::span<const uint32_t> ids) {
  uint32_t all = 0;
  for (const uint32_t id : ids) all |= id;
  return token_width_for(uint64_t{all} + 1);
}

// Plain loops: the compiler makes vectors of the narrow ones, and eight bytes at a time are enough for three.
void pack_tokens(std::span<const uint32_t> ids, TokenWidth width, void* to) {
  auto* out = static_cast<unsigned char*>(to);
  const uint32_t* from = ids.data();
  const size_t count = ids.size();
  switch (width) {
    case TokenWidth::two:
      for (size_t i = 0; i < count; ++i) store_le(out + 2 * i, static_cast<uint16_t>(from[i]));
      return;
    case TokenWidth::three: {
      size_t i = 0;
      // Two ids in one store of eight bytes, of which six stay.
      for (; i + 4 <= count; i += 2) store_le(out + 3 * i, uint64_t{from[i]} | uint64_t{from[i + 1]} << 24);
      for (; i < count; ++i) std::memcpy(out + 3 * i, &from[i], 3);
      return;
    }
    case TokenWidth::four:
      if (count > 0) std::memcpy(out, from, 4 * count);
      return;
  }
}

void unpack_tokens(Bytes packed, TokenWidth width, uint32_t* to) {
  const auto* from = reinterpret_cast<const unsigned char*>(packed.data());
  const size_t count = packed.size() / bytes_per_token(width);
  switch (width) {
    case TokenWidth::two:
      for (size_t i = 0; i < count; ++i) to[i] = load_le<uint16_t>(from + 2 * i);
      return;
    case TokenWidth::three: {
      size_t i = 0;
      for (; i + 4 <= count; i += 2) {
        const uint64_t two = load_le<uint64_t>(from + 3 * i);
        to[i] = static_cast<uint32_t>(two & 0xFFFFFF);
        to[i + 1] = static_cast<uint32_t>(two >> 24 & 0xFFFFFF);
      }
      for (; i < count; ++i) {
        to[i] = 0;
        std::memcpy(&to[i], from + 3 * i, 3);
      }
      return;
    }
    case TokenWidth::four:
      if (count > 0) std::memcpy(to, from, 4 * count);
      return;
  }
}

}  // namespace lmemo
