// SentencePiece's character map: a double array of keys in front of their replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lmemo::tokenizer {

class PrecompiledMap {
 public:
  // What a unit of the double array says (darts-clone).
  struct Unit {
    uint32_t bits;

    bool has_value() const { return (bits >> 8 & 1) != 0; }
    uint32_t label() const { return bits & (0x80000000u | 0xFF); }
    uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
    uint32_t value() const { return bits & 0x7FFFFFFF; }
  };

  // Each replacement ends with a zero byte.
  PrecompiledMap(std::vector<Unit> units, std::string replacements)
      : units_(std::move(units)), replacements_(std::move(replacements)) {}

  // Of the shortest key that the text begins with.
  std::optional<std::string_view> replacement_of(std::string_view text) const {
    if (units_.empty()) return std::nullopt;
    size_t node = units_[0].offset();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size() || units_[node].label() != byte) return std::nullopt;
      const Unit unit = units_[node];
      node ^= unit.offset();
      if (!unit.has_value()) continue;
      if (node >= units_.size() || units_[node].value() > replacements_.size()) return std::nullopt;
      const std::string_view rest = std::string_view(replacements_).substr(units_[node].value());
      return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
  }

  // Whether a key begins with these bytes, or they with a key. Requires: no zero byte.
  bool has_below(std::string_view prefix) const {
    if (units_.empty()) return false;
    size_t node = units_[0].offset();
    for (const char c : prefix) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (node >= units_.size() || units_[node].label() != byte) return false;
      if (units_[node].has_value()) return true;
      node ^= units_[node].offset();
    }
    return true;
  }

 private:
  std::vector<Unit> units_;
  std::string replacements_;
};

}  // namespace lmemo::tokenizer
