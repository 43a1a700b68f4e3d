#include "tokenizer/double_array_trie.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

namespace lmemo::tokenizer {

// Gives each node the first base at which all its children find a free place. A node with one child takes any free
// place; a larger family does not look at blocks in which others found none.
class DoubleArrayTrie::Builder {
 public:
  Builder(const std::vector<std::pair<std::string_view, uint32_t>>& texts, TableVector<Node>& nodes)
      : texts_(texts), nodes_(nodes) {
    nodes_.clear();
    add_block();
    take(0, kOwnParent);
    if (!texts_.empty()) open_.push_back({0, 0, texts_.size(), 0});
    while (!open_.empty()) {
      const Open next = open_.back();
      open_.pop_back();
      place_children(next);
    }
    nodes_[0].parent = kNone;
  }

 private:
  static constexpr size_t kBlock = 256;
  static constexpr uint32_t kOwnParent = kNone - 1;

  struct Child {
    unsigned char byte;
    size_t first, last;  // Its texts.
  };

  // A node without its children: the texts [first, last) share `depth` bytes, which end at `node`.
  struct Open {
    uint32_t node;
    size_t first, last, depth;
  };

  void place_children(const Open& open) {
    auto [node, first, last, depth] = open;
    if (texts_[first].first.size() == depth) nodes_[node].value = texts_[first++].second;
    if (first == last) return;
    children_.clear();
    while (first < last) {
      const char byte = texts_[first].first[depth];
      size_t end = first + 1;
      while (end < last && texts_[end].first[depth] == byte) ++end;
      children_.push_back({static_cast<unsigned char>(byte), first, end});
      first = end;
    }
    const uint32_t base = base_for(children_);
    nodes_[node].base = base;
    for (const Child& child : children_) take(base ^ child.byte, node);
    for (const Child& child : children_)
      open_.push_back({base ^ child.byte, child.first, child.last, depth + 1});
  }

  uint32_t base_for(const std::vector<Child>& children) {
    const bool is_single = children.size() == 1;
    for (size_t block = is_single ? first_free_ : first_roomy_; block < blocks_.size(); ++block) {
      if (blocks_[block].free_count >= children.size())
        if (const uint32_t base = base_in(block, children); base != kNone) return base;
      if (is_single) {
        if (block == first_free_) ++first_free_;
      } else if (++blocks_[block].failures > kMaxFailures && block == first_roomy_) {
        ++first_roomy_;
      }
    }
    add_block();
    return base_in(blocks_.size() - 1, children);
  }

  // A base in the block, or kNone.
  uint32_t base_in(size_t block, const std::vector<Child>& children) const {
    for (size_t word = 0; word < 4; ++word) {
      for (uint64_t free = blocks_[block].free[word]; free != 0; free &= free - 1) {
        const size_t place = block * kBlock + word * 64 + static_cast<size_t>(std::countr_zero(free));
        const auto base = static_cast<uint32_t>(place ^ children[0].byte);
        if (std::all_of(children.begin() + 1, children.end(),
                        [&](const Child& child) { return nodes_[base ^ child.byte].parent == kNone; }))
          return base;
      }
    }
    return kNone;
  }

  void add_block() {
    blocks_.emplace_back();
    nodes_.resize(nodes_.size() + kBlock);
  }

  void take(uint32_t node, uint32_t parent) {
    assert(nodes_[node].parent == kNone);
    nodes_[node].parent = parent;
    Block& block = blocks_[node / kBlock];
    --block.free_count;
    block.free[node % kBlock / 64] &= ~(uint64_t{1} << node % 64);
  }

  struct Block {
    std::array<uint64_t, 4> free{~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
    uint16_t free_count = kBlock;
    uint16_t failures = 0;
  };

  static constexpr size_t kMaxFailures = 4;
  const std::vector<std::pair<std::string_view, uint32_t>>& texts_;
  TableVector<Node>& nodes_;
  std::vector<Child> children_;
  std::vector<Open> open_;
  std::vector<Block> blocks_;
  size_t first_free_ = 0;   // Blocks before it are full.
  size_t first_roomy_ = 0;  // In blocks before it, families found no room.
};

DoubleArrayTrie::DoubleArrayTrie(const std::vector<std::pair<std::string_view, uint32_t>>& texts) {
  Builder(texts, nodes_);
}

}  // namespace lmemo::tokenizer
