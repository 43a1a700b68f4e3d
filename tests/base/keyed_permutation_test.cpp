#include "base/keyed_permutation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace lmemo {
namespace {

TEST_CASE("every number comes once, and its place is found again") {
  for (const uint64_t size :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 24, 25, 26, 99, 100, 101, 1000, 4095, 4097, 30'000}) {
    for (const uint64_t key : {0, 1, 77}) {
      const KeyedPermutation order(size, key);
      std::vector<bool> seen(size, false);
      for (uint64_t place = 0; place < size; ++place) {
        const uint64_t number = order(place);
        REQUIRE(number < size);
        REQUIRE_FALSE(seen[number]);
        seen[number] = true;
        REQUIRE(order.place_of(number) == place);
      }
    }
  }
}

TEST_CASE("sizes near the limit work") {
  const KeyedPermutation order(uint64_t{1} << 62, 5);
  for (const uint64_t place :
       {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 62) - 1, uint64_t{0x123456789abcdef}}) {
    CHECK(order.place_of(order(place)) == place);
  }
}

TEST_CASE("over many keys every number is equally likely at every place") {
  for (const uint64_t size : {2, 3, 5, 8, 13}) {
    constexpr int kKeys = 20'000;
    std::vector<int> counts(size * size, 0);
    for (int key = 0; key < kKeys; ++key) {
      const KeyedPermutation order(size, mixed_key({static_cast<uint64_t>(key)}));
      for (uint64_t place = 0; place < size; ++place) ++counts[place * size + order(place)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    for (const int count : counts) CHECK(std::abs(count - expected) < 6 * std::sqrt(expected));
  }
}

TEST_CASE("all six orders of three numbers come about as often") {
  constexpr int kKeys = 12'000;
  std::vector<int> counts(27, 0);
  for (int key = 0; key < kKeys; ++key) {
    const KeyedPermutation order(3, mixed_key({static_cast<uint64_t>(key), 9}));
    ++counts[order(0) * 9 + order(1) * 3 + order(2)];
  }
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    CHECK(std::abs(count - kKeys / 6) < 300);
  }
  CHECK(orders == 6);
}

TEST_CASE("an order is the same on every machine and in every version") {
  // A resumed epoch depends on these numbers. They may never change.
  const KeyedPermutation order(1000, mixed_key({1, 2, 3}));
  std::vector<uint64_t> first;
  for (uint64_t place = 0; place < 8; ++place) first.push_back(order(place));
  CHECK(first == std::vector<uint64_t>{842, 664, 710, 593, 415, 174, 585, 410});
}

}  // namespace
}  // namespace lmemo
