#include "tokenizer/fast/char_borders.h"

#include <algorithm>

namespace lmemo::tokenizer {

void CharBorders::add_token(std::string_view token) {
  for (size_t at = 1; at < token.size(); ++at) {
    const auto first = static_cast<unsigned char>(token[at]);
    if ((first & 0xC0) == 0x80) continue;
    size_t left = 1;
    while (left < std::min<size_t>(at, 4) && (static_cast<unsigned char>(token[at - left]) & 0xC0) == 0x80) ++left;
    const size_t right = std::min(char_bytes(token, at), token.size() - at);
    const char* const border = token.data() + at;
    const bool is_left_whole = (static_cast<unsigned char>(border[-static_cast<ptrdiff_t>(left)]) & 0xC0) != 0x80;
    const bool is_right_whole = right == char_bytes(token, at);
    uint64_t bit;
    if (is_left_whole && is_right_whole) {
      bit = full_key(border, left, right);
    } else {
      bit = broken_key(border, left, right);
      has_broken_.set(static_cast<size_t>(static_cast<unsigned char>(border[-1]) << 8 | first));
    }
    bits_[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

bool CharBorders::may_be_broken(const char* border, size_t before, size_t after) const {
  for (size_t left = 1; left <= before; ++left)
    for (size_t right = 1; right <= after; ++right)
      if (has(broken_key(border, left, right))) return true;
  return false;
}

void CharBorders::add_whole(std::string_view token) {
  longest_whole_ = std::max(longest_whole_, token.size());
  wholes_.emplace(token, true);
  if (token.size() <= PieceTable::kMaxKeyBytes) whole_filter_.set(PieceTable::key_of(token).hash() % kFilterBits);
}

}  // namespace lmemo::tokenizer
