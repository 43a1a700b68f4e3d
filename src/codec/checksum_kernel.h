// One body, compiled once per instruction set: include after defining LMEMO_CHECKSUM_KERNEL to the kernel's name.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/checksum.h"
#include "codec/checksum_dispatch.h"

namespace lmemo {
namespace {

uint64_t one_part(Bytes bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t many_parts(const Bytes* parts, size_t count, uint64_t seed) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, seed);
  for (size_t i = 0; i < count; ++i) XXH3_64bits_update(&state, parts[i].data(), parts[i].size());
  return XXH3_64bits_digest(&state);
}

}  // namespace

extern const ChecksumKernel LMEMO_CHECKSUM_KERNEL;
const ChecksumKernel LMEMO_CHECKSUM_KERNEL{one_part, many_parts};

}  // namespace lmemo
