// A permutation of 0 … size-1 that is computed, not stored: the same key and size give the same permutation on every
// machine, and any element of it costs the same whatever the size.
//
//   const KeyedPermutation order(80'000'000, mixed_key({seed, epoch}));
//   order(0);                       // The first of the shuffled numbers.
//   order.place_of(order(0)) == 0;  // And the way back.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lmemo {

// One key out of several numbers; their order counts.
uint64_t mixed_key(std::initializer_list<uint64_t> parts);

// A Feistel network on pairs (left, right) with left < height_ and right < width_, where height_ × width_ is the
// smallest near-square that holds `size`. What falls outside is permuted again ("cycle walking"), which happens
// to less than one number in √size.
class KeyedPermutation {
 public:
  // Requires: 0 < size ≤ 2^62.
  KeyedPermutation(uint64_t size, uint64_t key);

  // Requires: place < size().
  uint64_t operator()(uint64_t place) const;
  uint64_t place_of(uint64_t number) const;

  uint64_t size() const { return size_; }

 private:
  uint64_t forward(uint64_t number) const;
  uint64_t backward(uint64_t number) const;

  uint64_t size_;
  uint64_t key_;
  uint64_t height_;
  uint64_t width_;
};

}  // namespace lmemo
