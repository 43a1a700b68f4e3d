// A value for every code point, in blocks of 64 as UTF-8 has them. Blocks that are equal are kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

inline constexpr size_t kCodePoints = 0x110000;

template <typename Value>
class CodePointTable {
 public:
  // Requires: kCodePoints values.
  explicit CodePointTable(const std::vector<Value>& all) {
    std::map<std::string_view, uint16_t> known;
    for (size_t first = 0; first < kCodePoints; first += 64) {
      const std::string_view block(reinterpret_cast<const char*>(all.data() + first), 64 * sizeof(Value));
      auto number = static_cast<uint16_t>(records_.size() / 64);
      if (first >= 128) {  // ASCII is the first two blocks.
        const auto [entry, is_new] = known.try_emplace(block, number);
        number = entry->second;
        if (!is_new) {
          block_of_.push_back(number);
          continue;
        }
      }
      records_.insert(records_.end(), all.begin() + static_cast<ptrdiff_t>(first),
                      all.begin() + static_cast<ptrdiff_t>(first + 64));
      block_of_.push_back(number);
    }
  }

  Value of_ascii(char character) const { return records_[static_cast<unsigned char>(character)]; }

  // Of the character at `at`, and its length. Requires: well-formed UTF-8.
  Value at(const char* at, size_t& byte_count) const {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
    const uint32_t first = byte(0);
    if (first < 0x80) {
      byte_count = 1;
      return records_[first];
    }
    if (first < 0xE0) {
      byte_count = 2;
      return records_[block_of_[first & 0x1F] * 64 + (byte(1) & 0x3F)];
    }
    if (first < 0xF0) {
      byte_count = 3;
      return records_[block_of_[(first & 0x0F) << 6 | (byte(1) & 0x3F)] * 64 + (byte(2) & 0x3F)];
    }
    byte_count = 4;
    return records_[block_of_[(first & 0x07) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)] * 64 +
                    (byte(3) & 0x3F)];
  }

 private:
  std::vector<uint16_t> block_of_;
  std::vector<Value> records_;
};

}  // namespace lmemo::tokenizer
