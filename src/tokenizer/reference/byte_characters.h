// GPT-2's alphabet: one printable character for each byte.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace lmemo::tokenizer {

// Printable Latin-1 stands for itself; the others follow from U+0100 on.
inline const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> characters = [] {
    std::array<char32_t, 256> made{};
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool is_printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      made[byte] = is_printable ? byte : next++;
    }
    return made;
  }();
  return characters;
}

inline std::string bytes_as_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(out, byte_characters()[static_cast<unsigned char>(byte)]);
  return out;
}

}  // namespace lmemo::tokenizer
