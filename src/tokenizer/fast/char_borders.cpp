#include "tokenizer/fast/char_borders.h"

#include <algorithm>

#include "base/utf8.h"

namespace lmemo::tokenizer {
namespace {

bool is_inside(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The last or the first bytes of a character.
uint64_t broken_part(const char* at, size_t byte_count) {
  uint64_t value = 0;
  for (size_t i = 0; i < byte_count; ++i) value = value << 8 | static_cast<unsigned char>(at[i]);
  return (value << 3 | byte_count) * 0xC2B2AE3D27D4EB4F;
}

}  // namespace

void CharBorders::add_token(std::string_view token) {
  for (size_t at = 1; at < token.size(); ++at) {
    if (is_inside(token[at])) continue;
    const char* const border = token.data() + at;
    size_t left = 1;
    while (left < std::min<size_t>(at, 4) && is_inside(token[at - left])) ++left;
    const size_t right = std::min(char_bytes(token, at), token.size() - at);
    uint64_t bit;
    if (!is_inside(token[at - left]) && left == char_bytes(token, at - left) &&
        right == char_bytes(token, at)) {
      bit = bit_of(char_value(border - left, left), char_value(border, right));
    } else {
      bit = bit_of(broken_part(border - left, left), broken_part(border, right));
      has_broken_.set(static_cast<size_t>(static_cast<unsigned char>(border[-1])) << 8 |
                      static_cast<unsigned char>(border[0]));
    }
    bits_[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

void CharBorders::add_whole(std::string_view token) {
  uint64_t hash = 0;
  for (size_t at = 0; at < token.size();) {
    const size_t bytes = utf8_length(token.substr(at));
    if (bytes == 0) return;  // Half a character: no part is like that.
    const uint32_t value = char_value(token.data() + at, bytes);
    hash = next_hash(hash, value);
    at += bytes;
  }
  wholes_.emplace(token, true);
  whole_filter_.set(hash >> 48);
}

bool CharBorders::may_be_broken(const char* border, size_t before_bytes, size_t after_bytes) const {
  for (size_t left = 1; left <= before_bytes; ++left)
    for (size_t right = 1; right <= after_bytes; ++right)
      if (has(bit_of(broken_part(border - left, left), broken_part(border, right)))) return true;
  return false;
}

}  // namespace lmemo::tokenizer
