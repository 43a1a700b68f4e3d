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

// Whether a text may be one of few, told by its ends: most are known to be none of them without a look at them.
class EndsFilter {
 public:
  void add(std::string_view text) { bits_.set(bit_of(text)); }
  bool may_have(std::string_view text) const { return bits_[bit_of(text)]; }

 private:
  static constexpr size_t kBits = size_t{1} << 16;
  static size_t bit_of(std::string_view text) {
    const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(text[i])}; };
    const uint32_t ends = byte(0) | byte(text.size() / 2) << 8 | byte(text.size() - 1) << 16;
    return (ends ^ static_cast<uint32_t>(text.size()) << 24) * 0x9E3779B1u >> 16;
  }

  std::bitset<kBits> bits_;
};

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
    size_t part = 0;
    for (size_t at = bytes; at < piece.size(); at += bytes) {
      const size_t before_bytes = bytes;
      bytes = char_bytes(piece, at);
      const uint32_t after = char_value(piece.data() + at, bytes);
      if ((before | after) >= 0x80 && is_free(piece.data() + at, before, before_bytes, after, bytes)) {
        if (is_whole(piece.substr(part, at - part)) || !cut(at)) return false;
        part = at;
      }
      before = after;
    }
    return !is_whole(piece.substr(part));
  }

  // is_free_between for two characters of three bytes each, between which `border` lies. Whether a token has both is as
  // good as random, so that there is no branch on it.
  bool is_free_between_long(const char* border) const {
    uint32_t before, after;  // With one byte too many: those of both characters are surely there.
    std::memcpy(&before, border - 3, 4);
    std::memcpy(&after, border - 1, 4);
    before = __builtin_bswap32(before) >> 8;
    after = __builtin_bswap32(after) & 0xFFFFFF;
    const uint64_t left = left_key(before, 3), right = right_key(after, 3);
    const auto is_set = [this](uint64_t a, uint64_t b) { return static_cast<unsigned>(has(bit_of(a, b))); };
    unsigned is_joined = is_set(left, right);
    if (has_broken_at(border)) {
      const uint64_t left_1 = left_key(before & 0xFF, 1), left_2 = left_key(before & 0xFFFF, 2);
      const uint64_t right_1 = right_key(after >> 16, 1), right_2 = right_key(after >> 8, 2);
      is_joined |= is_set(left_1, right_1) | is_set(left_1, right_2) | is_set(left_1, right) |
                   is_set(left_2, right_1) | is_set(left_2, right_2) | is_set(left_2, right) |
                   is_set(left, right_1) | is_set(left, right_2);
    }
    return is_joined == 0;
  }
  bool has_wholes() const { return !wholes_.empty(); }
  bool is_whole(std::string_view part) const {
    return whole_filter_.may_have(part) && wholes_.contains(part);
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

  // The bytes of a character, or the first or last of them, as one number.
  static uint32_t char_value(const char* at, size_t byte_count) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
    if (byte_count == 1) return byte(0);
    if (byte_count == 2) return byte(0) << 8 | byte(1);
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    return byte_count == 3 ? three : three << 8 | byte(3);
  }
  // What lies on one side of a border, by its char_value.
  static uint64_t left_key(uint32_t bytes, size_t byte_count) {
    return (uint64_t{bytes} << 3 | byte_count) * 0x9E3779B97F4A7C15;
  }
  static uint64_t right_key(uint32_t bytes, size_t byte_count) {
    return (uint64_t{bytes} << 3 | byte_count) * 0xD6E8FEB86659FD93;
  }
  static uint64_t bit_of(uint64_t left_key, uint64_t right_key) { return (left_key ^ right_key) >> 43; }
  bool has(uint64_t bit) const { return bits_[bit / 64] >> bit % 64 & 1; }

  // False if some token may reach over the border.
  bool is_free(const char* border, uint32_t before, size_t before_bytes, uint32_t after,
               size_t after_bytes) const {
    if (has(bit_of(left_key(before, before_bytes), right_key(after, after_bytes)))) return false;
    return !has_broken_at(border) || !may_be_broken(border, before_bytes, after_bytes);
  }
  // The two bytes that meet there.
  static size_t pair_at(const char* border) {
    return static_cast<size_t>(static_cast<unsigned char>(border[-1])) << 8 |
           static_cast<unsigned char>(border[0]);
  }
  bool has_broken_at(const char* border) const { return has_broken_[pair_at(border)]; }
  bool may_be_broken(const char* border, size_t before_bytes, size_t after_bytes) const;

  std::vector<uint64_t> bits_;
  std::bitset<65536>
      has_broken_;  // By the two bytes at the border: whether a token has them beside half a character.
  TextMap<bool> wholes_;
  EndsFilter whole_filter_;
};

}  // namespace lmemo::tokenizer
