#include "codec/float_convert.h"

#include <bit>
#include <cstring>

#include "codec/float_convert_dispatch.h"

namespace lmemo {
namespace {

uint16_t half_of(uint32_t bits) {
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 65,536 and above.
  if (magnitude >= 0x38800000) {
    // Normal. Rounding up may carry into the exponent and on to infinity, which is right.
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (uint32_t{112} << 23);
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
  if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);  // Under half of the smallest.
  // Subnormal: units of 2^-24.
  const uint32_t exponent = magnitude >> 23, mantissa = (magnitude & 0x7fffff) | 0x800000;
  const uint32_t shift = 126 - exponent;
  const uint32_t kept = mantissa >> shift, rest = mantissa & ((uint32_t{1} << shift) - 1),
                 tie = uint32_t{1} << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > tie || (rest == tie && (kept & 1)) ? 1 : 0)));
}

uint32_t float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 0x1f,
                 mantissa = half & 0x3ff;
  if (exponent == 31) return sign | 0x7f800000 | (mantissa ? 0x400000 | mantissa << 13 : 0);
  if (exponent != 0) return sign | (exponent + 112) << 23 | mantissa << 13;
  if (mantissa == 0) return sign;
  const uint32_t zeros = static_cast<uint32_t>(std::countl_zero(mantissa)) - 21;  // Up to the implicit bit.
  return sign | (113 - zeros) << 23 | (mantissa << (zeros + 13) & 0x7fffff);
}

// The sum cannot overflow: what lies above is a NaN.
uint16_t bfloat_of(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return 0xffff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void floats_to_halves_portably(const float* from, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = half_of(std::bit_cast<uint32_t>(from[i]));
}
void floats_to_bfloats_portably(const float* from, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = bfloat_of(std::bit_cast<uint32_t>(from[i]));
}
// Through memory: a float that is loaded and stored as such may lose a signalling NaN on some machines.
void halves_to_floats_portably(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = float_of_half(from[i]);
    std::memcpy(to + i, &bits, sizeof bits);
  }
}
void bfloats_to_floats_portably(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(to + i, &bits, sizeof bits);
  }
}
void split_planes_portably(const uint16_t* from, uint8_t* front, uint8_t* back, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t rotated = std::rotl(from[i], 1);
    front[i] = static_cast<uint8_t>(rotated >> 8);
    back[i] = static_cast<uint8_t>(rotated);
  }
}
void join_planes_portably(const uint8_t* front, const uint8_t* back, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = std::rotr(static_cast<uint16_t>(front[i] << 8 | back[i]), 1);
}

}  // namespace

const FloatKernel kPortableFloats{floats_to_halves_portably, floats_to_bfloats_portably,
                                  halves_to_floats_portably, bfloats_to_floats_portably,
                                  split_planes_portably,     join_planes_portably};

const FloatKernel& chosen_float_kernel() {
#if defined(__x86_64__)
  static const bool has_all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has_all ? kAvx2Floats : kPortableFloats;
#else
  return kPortableFloats;
#endif
}

void floats_to_halves(std::span<const float> from, uint16_t* to) {
  chosen_float_kernel().floats_to_halves(from.data(), to, from.size());
}
void floats_to_bfloats(std::span<const float> from, uint16_t* to) {
  chosen_float_kernel().floats_to_bfloats(from.data(), to, from.size());
}
void halves_to_floats(std::span<const uint16_t> from, float* to) {
  chosen_float_kernel().halves_to_floats(from.data(), to, from.size());
}
void bfloats_to_floats(std::span<const uint16_t> from, float* to) {
  chosen_float_kernel().bfloats_to_floats(from.data(), to, from.size());
}

}  // namespace lmemo
