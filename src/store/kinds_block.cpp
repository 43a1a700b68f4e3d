#include "store/kinds_block.h"

#include <algorithm>

namespace lmemo {

std::string build_kinds_block(const std::vector<std::string>& kinds) {
  std::string block;
  append_le(block, static_cast<uint16_t>(kinds.size()));
  for (const std::string& kind : kinds) {
    block += static_cast<char>(kind.size());
    block += kind;
  }
  block.resize(padded(block.size()));
  return block;
}

std::optional<std::vector<std::string>> parse_kinds_block(Bytes block) {
  const std::string_view text = text_of(block);
  if (text.size() < sizeof(uint16_t)) return std::nullopt;
  const auto count = load_le<uint16_t>(text.data());
  size_t position = sizeof(uint16_t);
  std::vector<std::string> kinds;
  for (unsigned i = 0; i < count; ++i) {
    if (position >= text.size()) return std::nullopt;
    const size_t length = static_cast<uint8_t>(text[position++]);
    if (length == 0 || length > kMaxKindBytes || text.size() - position < length) return std::nullopt;
    kinds.emplace_back(text.substr(position, length));
    position += length;
  }
  return kinds;
}

uint16_t number_of_kind(std::vector<std::string>& kinds, std::string_view kind) {
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found != kinds.end()) return static_cast<uint16_t>(found - kinds.begin());
  kinds.emplace_back(kind);
  return static_cast<uint16_t>(kinds.size() - 1);
}

}  // namespace lmemo
