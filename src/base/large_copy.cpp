#include "base/large_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace lmemo {

#if defined(__x86_64__)
void stream_copy(std::byte* to, const std::byte* from, size_t byte_count) {
  constexpr size_t kLine = 64;
  const size_t head = std::min(byte_count, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  to += head, from += head, byte_count -= head;
  for (; byte_count >= kLine; to += kLine, from += kLine, byte_count -= kLine) {
    const auto* const in = reinterpret_cast<const __m128i*>(from);
    auto* const out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                  d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to, from, byte_count);
}
void end_stream() { _mm_sfence(); }
#else
void stream_copy(std::byte* to, const std::byte* from, size_t byte_count) {
  std::memcpy(to, from, byte_count);
}
void end_stream() {}
#endif

void expect_large(std::byte* memory, size_t byte_count) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto first = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + byte_count) / kHugePage * kHugePage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace lmemo
