// The kernels behind float_convert.h and half_planes.h. Chosen by what the CPU has, by hand, as in checksum_dispatch.h; tests compare them all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lmemo {

struct FloatKernel {
  void (*floats_to_halves)(const float* from, uint16_t* to, size_t count);
  void (*floats_to_bfloats)(const float* from, uint16_t* to, size_t count);
  void (*halves_to_floats)(const uint16_t* from, float* to, size_t count);
  void (*bfloats_to_floats)(const uint16_t* from, float* to, size_t count);
  // Each number rotated left by one, so that the sign comes last; then front bytes and back bytes apart, and back.
  void (*split_planes)(const uint16_t* from, uint8_t* front, uint8_t* back, size_t count);
  void (*join_planes)(const uint8_t* front, const uint8_t* back, uint16_t* to, size_t count);
};

extern const FloatKernel kPortableFloats;
#if defined(__x86_64__)
extern const FloatKernel kAvx2Floats;  // Needs AVX2 and F16C.
#endif
const FloatKernel& chosen_float_kernel();

}  // namespace lmemo
