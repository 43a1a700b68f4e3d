// Fixed-width integers at any address, little-endian as every lmemo file has them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace lmemo {

static_assert(std::endian::native == std::endian::little, "files are mapped as they are: little-endian only");

template <typename T>
T load_le(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store_le(void* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
void append_le(std::string& to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace lmemo
