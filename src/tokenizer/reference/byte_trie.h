// A set of texts that are found while walking over a longer one, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace lmemo::tokenizer {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;

  // The node at which the text ends; the same for the same text.
  uint32_t add(std::string_view text) {
    uint32_t node = kRoot;
    for (const char byte : text) {
      const auto [step, is_new] = steps_.try_emplace(key(node, byte), next_node_);
      if (is_new) ++next_node_;
      node = step->second;
    }
    return node;
  }

  std::optional<uint32_t> step(uint32_t node, char byte) const {
    const auto found = steps_.find(key(node, byte));
    if (found == steps_.end()) return std::nullopt;
    return found->second;
  }

 private:
  static uint64_t key(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<uint64_t, uint32_t> steps_;
  uint32_t next_node_ = 1;
};

}  // namespace lmemo::tokenizer
