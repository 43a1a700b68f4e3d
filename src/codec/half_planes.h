// Lossless compression of float16 and bfloat16 numbers. What compresses in a hidden state is the exponent: its bytes go into one
// plane, mantissa and sign into another, and each plane through zstd where that helps.
//
//   planes := block*                                  131,072 numbers each, the last one shorter
//   block  := u32 front_bytes, u32 back_bytes, front, back      0 bytes: the plane as it is, one byte a number
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

// Appends to `out`. Fails only if there is no memory.
Status compress_halves(std::span<const uint16_t> numbers, std::string& out);

// Fills `out` exactly, or says corruption; bytes from disk are hostile.
Status decompress_halves(Bytes compressed, std::span<uint16_t> out);

}  // namespace lmemo
