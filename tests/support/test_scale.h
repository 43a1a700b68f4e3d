#pragma once

// How long tests may loop. LMEMO_TEST_SCALE is a percentage: 100 when unset, 10 under the short sanitizer run,
// 1000 in `./dev soak`.
//
//   for (int round = 0; round < scaled(50); ++round) ...

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lmemo::test {

inline int64_t test_scale_percent() {
  static const int64_t percent = [] {
    const char* text = std::getenv("LMEMO_TEST_SCALE");
    const long long value = text == nullptr ? 100 : std::atoll(text);
    return value > 0 ? static_cast<int64_t>(value) : int64_t{100};
  }();
  return percent;
}

// `count` at the scale asked for, never less than `at_least`.
inline int64_t scaled(int64_t count, int64_t at_least = 1) {
  return std::max(at_least, count * test_scale_percent() / 100);
}

}  // namespace lmemo::test
