// Where a piece may be cut further without changing its ids: between two characters that no token has side by side.
// What lies between such places is short and comes again, so it is found in the piece table.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

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

  // Calls cut(end) for the end of each part of the piece but the last, as long as it returns true. Returns false if it
  // did not, or if the piece has to stay whole: then the cuts do not count. Requires: well-formed UTF-8, not empty.
  template <typename Cut>
  bool cut_piece(std::string_view piece, Cut cut) const {
    size_t bytes = char_bytes(piece, 0);
    uint32_t before = char_value(piece.data(), bytes);
    uint64_t part_hash = next_hash(0, before);
    size_t part = 0;
    for (size_t at = bytes; at < piece.size(); at += bytes) {
      const size_t before_bytes = bytes;
      bytes = char_bytes(piece, at);
      const uint32_t after = char_value(piece.data() + at, bytes);
      if ((before | after) >= 0x80 && is_free(piece.data() + at, before, before_bytes, after, bytes)) {
        if (is_whole(piece.substr(part, at - part), part_hash)) return false;
        if (!cut(at)) return false;
        part = at;
        part_hash = 0;
      }
      part_hash = next_hash(part_hash, after);
      before = after;
    }
    return !is_whole(piece.substr(part), part_hash);
  }

  // Whether no token reaches over the border between the character at `before` and the one behind it, at `after`.
  bool is_free_between(const char* before, const char* after, const char* end) const {
    const auto before_bytes = static_cast<size_t>(after - before);
    const size_t after_bytes = char_bytes({after, static_cast<size_t>(end - after)}, 0);
    return is_free(after, char_value(before, before_bytes), before_bytes, char_value(after, after_bytes),
                   after_bytes);
  }

 private:
  static constexpr size_t kBits = size_t{1} << 21;
  static constexpr size_t kFilterBits = size_t{1} << 16;

  // The bytes of a character as one number: different for different characters.
  static uint32_t char_value(const char* at, size_t byte_count) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
    if (byte_count == 1) return byte(0);
    if (byte_count == 2) return byte(0) << 8 | byte(1);
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    return byte_count == 3 ? three : three << 8 | byte(3);
  }
  static uint64_t next_hash(uint64_t hash, uint32_t character) {
    return (hash ^ character) * 0x9E3779B97F4A7C15;
  }
  static uint64_t bit_of(uint64_t left, uint64_t right) {
    const uint64_t key = (left << 32 ^ right) * 0x9E3779B97F4A7C15;
    return (key ^ key >> 29) * 0xD6E8FEB86659FD93 >> 43;
  }
  bool has(uint64_t bit) const { return bits_[bit / 64] >> bit % 64 & 1; }

  // False if some token may reach over the border.
  bool is_free(const char* border, uint32_t before, size_t before_bytes, uint32_t after,
               size_t after_bytes) const {
    if (has(bit_of(before, after))) return false;
    const size_t pair = static_cast<size_t>(static_cast<unsigned char>(border[-1])) << 8 |
                        static_cast<unsigned char>(border[0]);
    return !has_broken_[pair] || !may_be_broken(border, before_bytes, after_bytes);
  }
  bool may_be_broken(const char* border, size_t before_bytes, size_t after_bytes) const;
  bool is_whole(std::string_view part, uint64_t hash) const {
    return whole_filter_[hash >> 48] && wholes_.contains(part);
  }

  std::vector<uint64_t> bits_;
  std::bitset<65536>
      has_broken_;  // By the two bytes at the border: whether a token has them beside half a character.
  TextMap<bool> wholes_;
  std::bitset<kFilterBits> whole_filter_;  // By hash: most parts are none of them.
};

}  // namespace lmemo::tokenizer
