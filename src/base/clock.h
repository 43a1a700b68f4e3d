// What time it is. A test can bring its own clock.
#pragma once

#include <cstdint>
#include <ctime>

namespace lmemo {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since 1970.
  virtual int64_t now_ns() const {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

inline const Clock& system_clock() {
  static const Clock clock;
  return clock;
}

// Never goes back, good to a few milliseconds, costs a few nanoseconds.
inline int64_t coarse_monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace lmemo
