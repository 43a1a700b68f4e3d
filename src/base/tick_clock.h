// Ticks of the CPU where they are even and never stop, else nanoseconds: a third of the price of clock_gettime, for
// measuring what takes a hundred nanoseconds itself.
//
//   const uint64_t start = ticks_now();
//   …
//   total_ticks += ticks_since(start);
//   seconds = ticks_to_seconds(total_ticks);
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lmemo {

// True if the CPU's counter has one rate and never stops.
bool has_even_ticks();
inline const bool kHasEvenTicks = has_even_ticks();

inline int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline uint64_t ticks_now() {
#if defined(__x86_64__)
  if (kHasEvenTicks) [[likely]]
    return __rdtsc();
#endif
  return static_cast<uint64_t>(monotonic_ns());
}

// 0 rather than an age if two CPUs disagree by a few ticks.
inline uint64_t ticks_since(uint64_t start) {
  const uint64_t now = ticks_now();
  return now > start ? now - start : 0;
}

// The rate is measured against the system's clock since the process began, and gets more exact with time.
double seconds_per_tick();
inline double ticks_to_seconds(uint64_t ticks) { return static_cast<double>(ticks) * seconds_per_tick(); }

}  // namespace lmemo
