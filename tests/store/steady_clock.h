#pragma once

// A clock that moves when the test says so, and by one nanosecond per look.

#include <atomic>

#include "base/clock.h"

namespace lmemo::test {

class SteadyClock : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_.fetch_add(1); }
  void advance_seconds(int64_t seconds) { now_ns_ += seconds * 1'000'000'000; }

 private:
  mutable std::atomic<int64_t> now_ns_{1'800'000'000'000'000'000};
};

}  // namespace lmemo::test
