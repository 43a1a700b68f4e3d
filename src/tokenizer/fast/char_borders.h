// Where a piece may be cut further without changing its ids: between two characters that no token has side by side.
// What lies between such places is short and comes again, so it is found in the piece table.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/fast/piece_table.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

class CharBorders {
 public:
  CharBorders() : bits_(kBits / 64) {}

  // Notes every border between characters in a token, which may begin or end inside a character.
  void add_token(std::string_view token);

  // Notes a token that only ever comes out as a whole piece: a part that looks like it is not to be cut off.
  void add_whole(std::string_view token);
  bool is_whole(std::string_view part) const {
    if (part.size() > longest_whole_) return false;
    if (part.size() <= PieceTable::kMaxKeyBytes && !whole_filter_[PieceTable::key_of(part).hash() % kFilterBits])
      return false;
    return wholes_.contains(part);
  }

  // False if some token may reach over the border at `at`. Requires: well-formed text, a character begins at `at`, and
  // it is neither the first nor behind the end.
  bool is_free(std::string_view text, size_t at) const {
    const size_t before = char_bytes_before(text, at), after = char_bytes(text, at);
    const char* const border = text.data() + at;
    if (has(full_key(border, before, after))) return false;
    const uint32_t pair = static_cast<unsigned char>(border[-1]) << 8 | static_cast<unsigned char>(border[0]);
    return !has_broken_[pair] || !may_be_broken(border, before, after);
  }

 private:
  static constexpr size_t kBits = size_t{1} << 21;
  static constexpr size_t kFilterBits = size_t{1} << 15;

  static uint64_t bit_of(uint64_t left, uint64_t right) {
    uint64_t key = (left << 32 | right) * 0x9E3779B97F4A7C15;
    return (key ^ key >> 29) * 0xD6E8FEB86659FD93 >> 43;
  }
  // Between two whole characters.
  static uint64_t full_key(const char* border, size_t left, size_t right) {
    return bit_of(bytes_at(border - left, left), bytes_at(border, right));
  }
  // Between so many last bytes of one and so many first bytes of the other.
  static uint64_t broken_key(const char* border, size_t left, size_t right) {
    return bit_of(bytes_at(border - left, left) << 8 | left, bytes_at(border, right) << 8 | right);
  }
  static uint64_t bytes_at(const char* at, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(at[i]);
    return value;
  }
  bool may_be_broken(const char* border, size_t before, size_t after) const;
  bool has(uint64_t bit) const { return bits_[bit / 64] >> bit % 64 & 1; }

  std::bitset<65536> has_broken_;  // By the two bytes at the border: whether a token has them beside half a character.
  std::vector<uint64_t> bits_;
  TextMap<bool> wholes_;
  std::bitset<kFilterBits> whole_filter_;  // By hash: most parts are none of them.
  size_t longest_whole_ = 0;
};

}  // namespace lmemo::tokenizer
