#include "base/keyed_permutation.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lmemo {
namespace {

// An even number, so that both halves are treated alike. Four leave a pattern that tests can see in small sizes.
constexpr uint64_t kRounds = 8;

// The finaliser of splitmix64: every bit of the input changes half of the output.
uint64_t mixed(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// A number below `limit` for this round and half: the high half of a product instead of a slow remainder.
uint64_t round_value(uint64_t key, uint64_t round, uint64_t half, uint64_t limit) {
  const uint64_t hash = mixed(half ^ (key + round * 0xd1342543de82ef95));
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * limit) >> 64);
}

uint64_t sum_below(uint64_t a, uint64_t b, uint64_t limit) {
  const uint64_t sum = a + b;
  return sum >= limit ? sum - limit : sum;
}

}  // namespace

uint64_t mixed_key(std::initializer_list<uint64_t> parts) {
  uint64_t key = 0x6c6d656d6f;  // "lmemo"
  for (const uint64_t part : parts) key = mixed(key ^ mixed(part));
  return key;
}

KeyedPermutation::KeyedPermutation(uint64_t size, uint64_t key) : size_(size), key_(mixed(key)) {
  assert(size > 0 && size <= uint64_t{1} << 62);
  // At least 2: with one line of numbers there would be nothing but rotations.
  height_ = std::max<uint64_t>(2, static_cast<uint64_t>(std::sqrt(static_cast<double>(size))));
  width_ = (size + height_ - 1) / height_;
}

uint64_t KeyedPermutation::forward(uint64_t number) const {
  uint64_t left = number / width_;
  uint64_t right = number % width_;
  for (uint64_t round = 0; round < kRounds; round += 2) {
    left = sum_below(left, round_value(key_, round, right, height_), height_);
    right = sum_below(right, round_value(key_, round + 1, left, width_), width_);
  }
  return left * width_ + right;
}

uint64_t KeyedPermutation::backward(uint64_t number) const {
  uint64_t left = number / width_;
  uint64_t right = number % width_;
  for (uint64_t round = kRounds; round > 0; round -= 2) {
    right = sum_below(right, width_ - round_value(key_, round - 1, left, width_), width_);
    left = sum_below(left, height_ - round_value(key_, round - 2, right, height_), height_);
  }
  return left * width_ + right;
}

uint64_t KeyedPermutation::operator()(uint64_t place) const {
  assert(place < size_);
  uint64_t number = forward(place);
  while (number >= size_) number = forward(number);
  return number;
}

uint64_t KeyedPermutation::place_of(uint64_t number) const {
  assert(number < size_);
  uint64_t place = backward(number);
  while (place >= size_) place = backward(place);
  return place;
}

}  // namespace lmemo
