#include "tokenizer/double_array_trie.h"

#include <algorithm>
#include <cassert>

namespace lmemo::tokenizer {

// Takes the nodes in order and gives each the first base at which all its children find a free place. Blocks that are
// nearly full are no longer looked at.
class DoubleArrayTrie::Builder {
 public:
  Builder(const std::vector<std::pair<std::string_view, uint32_t>>& texts, std::vector<Node>& nodes)
      : texts_(texts), nodes_(nodes) {
    nodes_.assign(kBlock, {});
    used_.assign(1, 0);
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
    for (const Child& child : children_) open_.push_back({base ^ child.byte, child.first, child.last, depth + 1});
  }

  uint32_t base_for(const std::vector<Child>& children) {
    for (size_t block = first_open_; block < used_.size(); ++block) {
      if (kBlock - used_[block] < children.size()) continue;
      for (size_t low = 0; low < kBlock; ++low) {
        const auto base = static_cast<uint32_t>(block * kBlock + low);
        if (std::all_of(children.begin(), children.end(),
                        [&](const Child& child) { return nodes_[base ^ child.byte].parent == kNone; }))
          return base;
      }
      // What did not fit here: after some failures the block is given up.
      if (block == first_open_ && (++failures_ > kMaxFailures || used_[block] == kBlock)) {
        ++first_open_;
        failures_ = 0;
      }
    }
    used_.push_back(0);
    nodes_.resize(nodes_.size() + kBlock);
    return static_cast<uint32_t>((used_.size() - 1) * kBlock);
  }

  void take(uint32_t node, uint32_t parent) {
    assert(nodes_[node].parent == kNone);
    nodes_[node].parent = parent;
    if (++used_[node / kBlock] == kBlock && node / kBlock == first_open_) ++first_open_, failures_ = 0;
  }

  static constexpr size_t kMaxFailures = 8;
  const std::vector<std::pair<std::string_view, uint32_t>>& texts_;
  std::vector<Node>& nodes_;
  std::vector<Child> children_;
  std::vector<Open> open_;
  std::vector<uint16_t> used_;  // Nodes taken in each block.
  size_t first_open_ = 0;
  size_t failures_ = 0;
};

DoubleArrayTrie::DoubleArrayTrie(const std::vector<std::pair<std::string_view, uint32_t>>& texts) {
  Builder(texts, nodes_);
}

}  // namespace lmemo::tokenizer
