// A fixed set of texts, each with a number, in two arrays: one step from a node to the next is one memory access.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/lazy_memory.h"

namespace lmemo::tokenizer {

class DoubleArrayTrie {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  DoubleArrayTrie() = default;
  // Requires: sorted by text (bytes as unsigned), no text twice, none empty, no value kNone.
  explicit DoubleArrayTrie(const std::vector<std::pair<std::string_view, uint32_t>>& texts);

  // The value of the longest text with which [text, end) begins, or kNone.
  uint32_t longest_prefix(const char* text, const char* end) const {
    size_t reach;
    return longest_prefix(text, end, reach);
  }
  // `reach`: with how many bytes of [text, end) some text begins.
  uint32_t longest_prefix(const char* text, const char* end, size_t& reach) const {
    uint32_t value = kNone;
    uint32_t node = 0;
    const char* at = text;
    for (; at != end; ++at) {
      const uint32_t next = nodes_[node].base ^ static_cast<unsigned char>(*at);
      if (nodes_[next].parent != node) break;
      node = next;
      if (nodes_[node].value != kNone) value = nodes_[node].value;
    }
    reach = static_cast<size_t>(at - text);
    return value;
  }

  // The value of exactly this text, or kNone.
  uint32_t find(std::string_view text) const {
    uint32_t node = 0;
    for (const char byte : text) {
      const uint32_t next = nodes_[node].base ^ static_cast<unsigned char>(byte);
      if (nodes_[next].parent != node) return kNone;
      node = next;
    }
    return nodes_[node].value;
  }

  // Calls visit(byte_count, value) for every text with which `text` begins, short ones first.
  template <typename Visit>
  void each_prefix(const char* text, const char* end, Visit visit) const {
    uint32_t node = 0;
    for (const char* at = text; at != end;) {
      const uint32_t next = nodes_[node].base ^ static_cast<unsigned char>(*at);
      if (nodes_[next].parent != node) return;
      node = next;
      ++at;
      if (nodes_[node].value != kNone) visit(static_cast<size_t>(at - text), nodes_[node].value);
    }
  }

 private:
  // A free node has the parent kNone, which no step comes from. Every base lies in a whole block of 256 nodes, so
  // that no step leaves the array.
  struct Node {
    uint32_t base = 0;
    uint32_t parent = kNone;
    uint32_t value = kNone;
  };

  class Builder;
  TableVector<Node> nodes_ = TableVector<Node>(256);
};

}  // namespace lmemo::tokenizer
