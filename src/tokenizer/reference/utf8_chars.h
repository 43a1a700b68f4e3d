// Walks over text that is known to be well-formed UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lmemo::tokenizer {

// Bytes of the character that starts here. Requires: at < text.size(), at the start of a character.
inline size_t char_bytes(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// Bytes of the character that ends before `end`. Requires: end > 0.
inline size_t char_bytes_before(std::string_view text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return end - start;
}

inline uint32_t char_at(std::string_view text, size_t at) {
  const size_t count = char_bytes(text, at);
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i])); };
  if (count == 1) return byte(0);
  uint32_t value = byte(0) & (0x7Fu >> count);
  for (size_t i = 1; i < count; ++i) value = value << 6 | (byte(i) & 0x3F);
  return value;
}

// From `at`, behind the blocks of eight bytes that are ASCII alone: a quick way over most of a text.
inline size_t behind_ascii_blocks(std::string_view text, size_t at) {
  uint64_t bytes;
  for (; at + 64 <= text.size();
       at += 64) {  // A loop over a fixed number, which compilers turn into few instructions.
    uint64_t all = 0;
    for (size_t i = 0; i < 64; i += 8) {
      std::memcpy(&bytes, text.data() + at + i, 8);
      all |= bytes;
    }
    if (all & 0x8080808080808080) break;
  }
  for (; at + 8 <= text.size(); at += 8) {
    std::memcpy(&bytes, text.data() + at, 8);
    if (bytes & 0x8080808080808080) break;
  }
  return at;
}

inline size_t count_chars(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace lmemo::tokenizer
