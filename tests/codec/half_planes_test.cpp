#include "codec/half_planes.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "codec/float_convert.h"
#include "codec/float_convert_dispatch.h"

namespace lmemo {
namespace {

std::vector<uint16_t> states_like_numbers(size_t count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal(0.0f, 0.7f);
  std::vector<float> floats(count);
  for (float& number : floats) number = normal(random);
  std::vector<uint16_t> numbers(count);
  floats_to_bfloats(floats, numbers.data());
  return numbers;
}

std::string compressed(const std::vector<uint16_t>& numbers) {
  std::string out;
  REQUIRE(compress_halves(numbers, out).ok());
  return out;
}

TEST_CASE("numbers come back to the bit, whatever their count and pattern") {
  for (const size_t count : {0, 1, 2, 31, 32, 33, 1000, 131'071, 131'072, 131'073, 300'000}) {
    std::vector<uint16_t> noise(count), zeros(count, 0);
    std::mt19937 random(3);
    for (uint16_t& number : noise) number = static_cast<uint16_t>(random());
    for (const std::vector<uint16_t>& numbers : {states_like_numbers(count), noise, zeros}) {
      const std::string small = compressed(numbers);
      CHECK(small.size() <= 2 * count + 8 * (count / 131'072 + 1));
      std::vector<uint16_t> back(count, 0x5555);
      REQUIRE(decompress_halves(bytes_of(small), back).ok());
      CHECK(back == numbers);
    }
  }
}

TEST_CASE("what is distributed like hidden states takes less than 70 %") {
  const std::vector<uint16_t> numbers = states_like_numbers(200'000);
  CHECK(compressed(numbers).size() * 10 < numbers.size() * 2 * 7);
}

TEST_CASE("all kernels split and join alike") {
  const std::vector<uint16_t> numbers = states_like_numbers(1001);
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return;
  std::vector<uint8_t> front(1001), back(1001), front2(1001), back2(1001);
  kPortableFloats.split_planes(numbers.data(), front.data(), back.data(), 1001);
  kAvx2Floats.split_planes(numbers.data(), front2.data(), back2.data(), 1001);
  CHECK(front == front2);
  CHECK(back == back2);
  std::vector<uint16_t> joined(1001), joined2(1001);
  kPortableFloats.join_planes(front.data(), back.data(), joined.data(), 1001);
  kAvx2Floats.join_planes(front.data(), back.data(), joined2.data(), 1001);
  CHECK(joined == numbers);
  CHECK(joined2 == numbers);
#endif
}

TEST_CASE("a cut, a flipped bit and a wrong count are seen or harmless, and never write past the end") {
  const std::vector<uint16_t> numbers = states_like_numbers(600);
  std::string small = compressed(numbers);
  std::vector<uint16_t> back(600);
  for (size_t cut = 0; cut < small.size(); ++cut) {
    const Status status = decompress_halves(bytes_of(small).first(cut), back);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == ErrorCode::corruption);
  }
  for (size_t bit = 0; bit < small.size() * 8; ++bit) {
    small[bit / 8] ^= static_cast<char>(1 << bit % 8);
    static_cast<void>(decompress_halves(bytes_of(small), back));
    small[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  for (const size_t wrong : {0, 1, 599, 601, 5000}) {
    std::vector<uint16_t> other(wrong);
    CHECK_FALSE(decompress_halves(bytes_of(small), other).ok());
  }
}

}  // namespace
}  // namespace lmemo
