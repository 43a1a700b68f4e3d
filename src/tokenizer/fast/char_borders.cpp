#include "tokenizer/fast/char_borders.h"

#include <algorithm>

#include "base/utf8.h"

namespace lmemo::tokenizer {
namespace {

bool is_inside(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

void CharBorders::add_token(std::string_view token) {
  for (size_t at = 1; at < token.size(); ++at) {
    if (is_inside(token[at])) continue;
    const char* const border = token.data() + at;
    size_t left = 1;
    while (left < std::min<size_t>(at, 4) && is_inside(token[at - left])) ++left;
    const size_t right = std::min(char_bytes(token, at), token.size() - at);
    const bool is_whole = !is_inside(token[at - left]) && left == char_bytes(token, at - left) &&
                          right == char_bytes(token, at);
    if (!is_whole) has_broken_.set(pair_at(border));
    const uint64_t bit =
        bit_of(left_key(char_value(border - left, left), left), right_key(char_value(border, right), right));
    bits_[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

void CharBorders::add_whole(std::string_view token) {
  for (size_t at = 0, bytes; at < token.size(); at += bytes) {
    bytes = utf8_length(token.substr(at));
    if (bytes == 0) return;  // Half a character: no part is like that.
  }
  wholes_.emplace(token, true);
  whole_filter_.add(token);
}

bool CharBorders::may_be_broken(const char* border, size_t before_bytes, size_t after_bytes) const {
  for (size_t left = 1; left <= before_bytes; ++left)
    for (size_t right = 1; right <= after_bytes; ++right)
      if (has(bit_of(left_key(char_value(border - left, left), left),
                     right_key(char_value(border, right), right))))
        return true;
  return false;
}

}  // namespace lmemo::tokenizer
