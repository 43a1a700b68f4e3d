// A set of texts that are found while walking over a longer one, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizer/flat_table.h"

namespace lmemo::tokenizer {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;

  // The node at which the text ends; the same for the same text.
  uint32_t add(std::string_view text) {
    uint32_t node = kRoot;
    for (const char byte : text) {
      const uint32_t next = steps_.find_or_add(key(node, byte), next_node_);
      if (next == next_node_) ++next_node_;
      node = next;
    }
    return node;
  }

  std::optional<uint32_t> step(uint32_t node, char byte) const {
    const uint32_t next = steps_.find(key(node, byte));
    if (next == NumberTable::kNone) return std::nullopt;
    return next;
  }

  // Where the text ends, if it is the start of one that was added.
  std::optional<uint32_t> find(std::string_view text) const {
    std::optional<uint32_t> node = kRoot;
    for (size_t i = 0; node && i < text.size(); ++i) node = step(*node, text[i]);
    return node;
  }

  size_t node_count() const { return next_node_; }

 private:
  static uint64_t key(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  NumberTable steps_;
  uint32_t next_node_ = 1;
};

}  // namespace lmemo::tokenizer
