// float32 to and from float16 and bfloat16, to the bit what torch's own cast of a contiguous tensor gives on a CPU with
// F16C: round to nearest, ties to even; subnormals kept; too large becomes infinity. A NaN becomes quiet and keeps its sign and
// the front of its payload in float16; in bfloat16 every NaN becomes 0xffff. Back to float32 is exact; a signalling
// float16 NaN becomes quiet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lmemo {

void floats_to_halves(std::span<const float> from, uint16_t* to);
void floats_to_bfloats(std::span<const float> from, uint16_t* to);
void halves_to_floats(std::span<const uint16_t> from, float* to);
void bfloats_to_floats(std::span<const uint16_t> from, float* to);

}  // namespace lmemo
