// Views of raw bytes, and the 32-byte digest that identifies everything in lmemo.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lmemo {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A SHA-256 digest. Ordered and compared byte by byte.
struct Digest {
  std::array<std::byte, 32> bytes{};

  std::string hex() const;
  static std::optional<Digest> from_hex(std::string_view hex);

  bool operator==(const Digest& other) const {
    return std::memcmp(bytes.data(), other.bytes.data(), 32) == 0;
  }
  std::strong_ordering operator<=>(const Digest& other) const {
    return std::memcmp(bytes.data(), other.bytes.data(), 32) <=> 0;
  }
};

}  // namespace lmemo

// The digest is already uniform: its first bytes are as good a hash as any.
template <>
struct std::hash<lmemo::Digest> {
  std::size_t operator()(const lmemo::Digest& digest) const noexcept {
    std::size_t value;
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
