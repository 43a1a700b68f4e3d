#include "codec/float_convert.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/float_convert_dispatch.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

// Rounds by trying: the two neighbours, the nearer one, the even one of two equally near. Slow, and nothing but the definition.
double value_of_half(uint16_t half) {
  const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
}
uint16_t half_by_definition(float number) {
  const uint16_t sign = std::signbit(number) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(number));
  if (std::isinf(number) || magnitude >= 65520.0) return sign | 0x7c00;
  uint16_t below = 0,
           above = 0x7c00;  // As numbers, halves are ordered like their bits; 0x7c00 stands for 65,536.
  while (above - below > 1) {
    const auto middle = static_cast<uint16_t>((above + below) / 2);
    (value_of_half(middle) <= magnitude ? below : above) = middle;
  }
  const double down = magnitude - value_of_half(below), up = value_of_half(above) - magnitude;
  const bool goes_up = up < down || (up == down && (below & 1) != 0);
  return static_cast<uint16_t>(sign | (goes_up ? above : below));
}

std::vector<float> floats_of(const std::vector<uint32_t>& bits) {
  std::vector<float> floats(bits.size());
  std::memcpy(floats.data(), bits.data(), bits.size() * sizeof(uint32_t));
  return floats;
}

std::vector<const FloatKernel*> kernels() {
  std::vector<const FloatKernel*> all = {&kPortableFloats};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) all.push_back(&kAvx2Floats);
#endif
  return all;
}

// Around every power of two that a half can hold and every tie between two halves, and what is not a number.
std::vector<uint32_t> edges() {
  std::vector<uint32_t> bits;
  for (uint32_t exponent = 0; exponent <= 255; ++exponent)
    for (const uint32_t mantissa :
         {0u,        1u,        0xfffu,    0x1000u,   0x1001u,   0x2fffu,  0x3000u,   0x3001u,
          0x7fffu,   0x8000u,   0x8001u,   0x17fffu,  0x18000u,  0x18001u, 0x3fffffu, 0x400000u,
          0x400001u, 0x7fe000u, 0x7fefffu, 0x7ff000u, 0x7f8000u, 0x7fffffu})
      for (const uint32_t sign : {0u, 0x80000000u}) bits.push_back(sign | exponent << 23 | mantissa);
  return bits;
}

TEST_CASE("rounding to half precision is to the nearest, ties to even, subnormals and infinities included") {
  std::vector<uint32_t> bits = edges();
  std::mt19937 random(7);
  for (int i = 0; i < test::scaled(20'000); ++i) bits.push_back(random());
  // Where halves live; most random floats are far outside.
  for (int i = 0; i < test::scaled(20'000); ++i)
    bits.push_back((random() & 0x80000000) | (0x32000000 + random() % 0x16000000));
  const std::vector<float> floats = floats_of(bits);
  std::vector<uint16_t> halves(bits.size());
  for (const FloatKernel* kernel : kernels()) {
    kernel->floats_to_halves(floats.data(), halves.data(), floats.size());
    for (size_t i = 0; i < bits.size(); ++i)
      if (!std::isnan(floats[i])) REQUIRE_MESSAGE(halves[i] == half_by_definition(floats[i]), bits[i]);
  }
}

TEST_CASE("rounding to bfloat16 is to the nearest, ties to even") {
  const auto one = [](uint32_t bits) {
    uint16_t rounded = 0;
    floats_to_bfloats(floats_of({bits}), &rounded);
    return rounded;
  };
  CHECK(one(0x3f808000) == 0x3f80);  // A tie: to the even one below …
  CHECK(one(0x3f818000) == 0x3f82);  // … and above.
  CHECK(one(0x3f808001) == 0x3f81);
  CHECK(one(0x00000001) == 0x0000);
  CHECK(one(0x00018000) == 0x0002);
  CHECK(one(0x7f7fffff) == 0x7f80);  // Too large: infinity.
  CHECK(one(0xff800000) == 0xff80);
  CHECK(one(0x7f800001) == 0xffff);
  CHECK(one(0xffc12345) == 0xffff);
}

TEST_CASE("a NaN keeps its sign and the front of its payload in half precision, and becomes quiet") {
  uint16_t half = 0;
  floats_to_halves(floats_of({0x7f800001}), &half);
  CHECK(half == 0x7e00);
  floats_to_halves(floats_of({0xff812345}), &half);
  CHECK(half == 0xfe09);
}

TEST_CASE("every half and every bfloat16 comes back as what it was") {
  std::vector<uint16_t> all(65536), back(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(all.size());
  for (const FloatKernel* kernel : kernels()) {
    kernel->halves_to_floats(all.data(), floats.data(), all.size());
    kernel->floats_to_halves(floats.data(), back.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_nan = (i & 0x7fff) > 0x7c00;
      REQUIRE(back[i] == (is_nan ? all[i] | 0x200 : all[i]));
      if (!is_nan && (i & 0x7c00) != 0x7c00)
        REQUIRE(std::fabs(static_cast<double>(floats[i])) ==
                value_of_half(static_cast<uint16_t>(i & 0x7fff)));
    }
    kernel->bfloats_to_floats(all.data(), floats.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i)
      REQUIRE(std::bit_cast<uint32_t>(floats[i]) == static_cast<uint32_t>(i) << 16);
    kernel->floats_to_bfloats(floats.data(), back.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) REQUIRE(back[i] == ((i & 0x7fff) > 0x7f80 ? 0xffff : all[i]));
  }
}

}  // namespace
}  // namespace lmemo
