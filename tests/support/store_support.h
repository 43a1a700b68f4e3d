// Keys and values for tests of stores.
#pragma once

#include <optional>
#include <string>

#include "lmemo/store.h"

namespace lmemo::test {

inline Key key_of(std::string_view kind, int number) { return *Key::of(kind, {{"number", number}}); }

// Bytes that tell their own length and position: a wrong byte shows.
inline std::string value_of(size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>((i * 31 + size * 7 + (i >> 8)) & 0xff);
  return value;
}

inline std::optional<std::string> found(Store& store, const Digest& digest) {
  const std::optional<Hit> hit = store.find(digest);
  if (!hit) return std::nullopt;
  return std::string(text_of(hit->value()));
}

}  // namespace lmemo::test
