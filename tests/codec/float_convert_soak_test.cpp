#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "codec/float_convert_dispatch.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

std::vector<const FloatKernel*> kernels() {
  std::vector<const FloatKernel*> all = {&kPortableFloats};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) all.push_back(&kAvx2Floats);
#endif
  return all;
}

TEST_CASE("all kernels give the same bits, at every length and place; in a soak for every float there is") {
  const FloatKernel& reference = kPortableFloats;
  constexpr size_t kStep = 1 << 16;
  const bool is_soak = test::scaled(100) >= 1000;
  std::vector<float> floats(kStep);
  std::vector<uint16_t> expected(kStep), found(kStep);
  for (const FloatKernel* kernel : kernels()) {
    // All 65,536 steps in a soak; 101 of them, spread over the exponents, else.
    for (uint64_t step = 0; step < 65536; step += is_soak ? 1 : 653) {
      for (size_t i = 0; i < kStep; ++i) {
        const auto bits = static_cast<uint32_t>(step << 16 | i);
        std::memcpy(&floats[i], &bits, sizeof bits);
      }
      reference.floats_to_halves(floats.data(), expected.data(), kStep);
      kernel->floats_to_halves(floats.data(), found.data(), kStep);
      REQUIRE(found == expected);
      reference.floats_to_bfloats(floats.data(), expected.data(), kStep);
      kernel->floats_to_bfloats(floats.data(), found.data(), kStep);
      REQUIRE(found == expected);
    }
    for (size_t start = 0; start < 9; ++start)
      for (size_t count = 0; count < 70; ++count) {
        std::vector<uint16_t> guarded(80, 0xabcd);
        kernel->floats_to_halves(floats.data() + start, guarded.data() + 1, count);
        CHECK(guarded[0] == 0xabcd);
        CHECK(guarded[count + 1] == 0xabcd);
        kernel->floats_to_bfloats(floats.data() + start, guarded.data() + 1, count);
        CHECK(guarded[count + 1] == 0xabcd);
      }
  }
}

}  // namespace
}  // namespace lmemo
