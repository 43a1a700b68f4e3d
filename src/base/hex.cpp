#include "base/hex.h"

namespace lmemo {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(Bytes bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (std::byte byte : bytes) {
    hex += kDigits[static_cast<unsigned>(byte) >> 4];
    hex += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return hex;
}

std::string to_hex(uint64_t value) {
  std::string hex(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) hex[static_cast<size_t>(i)] = kDigits[value & 15];
  return hex;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = value_of(hex[i]), low = value_of(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string Digest::hex() const { return to_hex(bytes); }

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  const std::optional<std::string> raw = lmemo::from_hex(hex);
  if (!raw || raw->size() != 32) return std::nullopt;
  Digest digest;
  std::memcpy(digest.bytes.data(), raw->data(), 32);
  return digest;
}

}  // namespace lmemo
