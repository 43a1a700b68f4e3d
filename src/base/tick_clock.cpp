#include "base/tick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lmemo {
namespace {

// Two reads of the clock are off by some 100 ns: one in ten thousand.
constexpr int64_t kShortestSpanNs = 1'000'000;

struct Anchor {
  int64_t time_ns = monotonic_ns();
  uint64_t ticks = ticks_now();
};
// Initialised after kHasEvenTicks, which the header defines first.
const Anchor kAnchor;

}  // namespace

bool has_even_ticks() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

double seconds_per_tick() {
  if (!kHasEvenTicks) return 1e-9;
  int64_t span_ns;
  uint64_t ticks;
  do {
    span_ns = monotonic_ns() - kAnchor.time_ns;
    ticks = ticks_since(kAnchor.ticks);
  } while (span_ns < kShortestSpanNs || ticks == 0);
  return static_cast<double>(span_ns) * 1e-9 / static_cast<double>(ticks);
}

}  // namespace lmemo
