#include "base/tick_clock.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace lmemo {

TEST_CASE("ticks measure what the clock measures") {
  const int64_t start_ns = monotonic_ns();
  const uint64_t start = ticks_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const double by_ticks = ticks_to_seconds(ticks_since(start));
  const double by_clock = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
  CHECK(by_ticks >= 0.0299);
  CHECK(by_ticks <= by_clock * 1.01);
}

TEST_CASE("a start in the future is no age") { CHECK(ticks_since(ticks_now() + (uint64_t{1} << 40)) == 0); }

}  // namespace lmemo
