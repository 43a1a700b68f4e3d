// Chooses the XXH3 kernel by what the CPU has. By hand: target_clones crashes TSan binaries before main.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lmemo/bytes.h"

namespace lmemo {

struct ChecksumKernel {
  uint64_t (*one_part)(Bytes bytes, uint64_t seed);
  uint64_t (*many_parts)(const Bytes* parts, size_t count, uint64_t seed);
};

extern const ChecksumKernel kPortableChecksum;
#if defined(__x86_64__)
extern const ChecksumKernel kAvx2Checksum;
#endif

}  // namespace lmemo
