#define LMEMO_CHECKSUM_KERNEL kPortableChecksum
#include "base/cpu.h"
#include "codec/checksum_kernel.h"

namespace lmemo {
namespace {

const ChecksumKernel& kernel() {
#if defined(__x86_64__)
  static const ChecksumKernel chosen = cpu_has_avx2() ? kAvx2Checksum : kPortableChecksum;
  return chosen;
#else
  return kPortableChecksum;
#endif
}

}  // namespace

uint64_t checksum(Bytes bytes, uint64_t seed) { return kernel().one_part(bytes, seed); }

uint64_t checksum(std::initializer_list<Bytes> parts, uint64_t seed) {
  return kernel().many_parts(parts.begin(), parts.size(), seed);
}

}  // namespace lmemo
