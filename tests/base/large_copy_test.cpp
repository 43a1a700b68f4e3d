#include "base/large_copy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace lmemo;

TEST_CASE("a streamed copy has every byte, wherever it begins and ends, and touches no other") {
  std::vector<std::byte> from(1000), to(1200);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (const size_t length : {0, 1, 15, 63, 64, 65, 127, 128, 200, 640, 900})
    for (size_t shift = 0; shift < 70; ++shift) {
      std::fill(to.begin(), to.end(), std::byte{0xee});
      stream_copy(to.data() + 64 + shift, from.data() + shift % 9, length);
      end_stream();
      const auto begin = to.begin() + 64 + static_cast<long>(shift), end = begin + static_cast<long>(length);
      REQUIRE(std::equal(begin, end, from.begin() + static_cast<long>(shift % 9)));
      REQUIRE(std::all_of(to.begin(), begin, [](std::byte byte) { return byte == std::byte{0xee}; }));
      REQUIRE(std::all_of(end, to.end(), [](std::byte byte) { return byte == std::byte{0xee}; }));
    }
}

TEST_CASE("asking for large pages changes nothing that is there") {
  std::vector<std::byte> memory(size_t{7} << 20, std::byte{5});
  expect_large(memory.data() + 3, memory.size() - 5);
  expect_large(memory.data(), 100);
  expect_large(nullptr, 0);
  CHECK(std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{5}; }));
}
