// The memory that results are written to, and that is kept for the next ones.

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "lmemo/tokenizer.h"

namespace lmemo {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t resident_bytes() {
  size_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TokenIds filled(size_t count, uint32_t id) {
  TokenIds ids(count);
  std::fill(ids.begin(), ids.end(), id);
  return ids;
}

}  // namespace

TEST_CASE("a result that was freed lends its memory to the next of its size, and to none that is larger") {
  // Where it was; nobody looks there.
  const auto place_of = [](const TokenIds& ids) { return reinterpret_cast<uintptr_t>(ids.data()); };
  const uintptr_t place = place_of(filled(kMiB, 1));
  CHECK(place_of(filled(kMiB, 2)) == place);
  const TokenIds kept = filled(kMiB, 3);
  const TokenIds other = filled(kMiB, 4);
  CHECK(kept.data() != other.data());
  CHECK(place_of(filled(8 * kMiB, 5)) != place);
  CHECK(std::count(kept.begin(), kept.end(), 3u) == std::ptrdiff_t{kMiB});
}

TEST_CASE("what is kept is bounded") {
  const size_t before = resident_bytes();
  {
    std::vector<TokenIds> results;
    for (uint32_t i = 0; i < 40; ++i) results.push_back(filled(2 * kMiB, i));
    CHECK(resident_bytes() > before + 200 * kMiB);
    for (uint32_t i = 0; i < 40; ++i) CHECK(results[i].back() == i);
  }
  CHECK(resident_bytes() < before + 80 * kMiB);
}

TEST_CASE("threads that make and drop results never share one") {
  std::vector<std::jthread> threads;
  std::atomic<size_t> wrong = 0;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&wrong, thread] {
      std::mt19937 random(thread);
      std::vector<TokenIds> held(3);
      for (uint32_t round = 0; round < 150; ++round) {
        TokenIds& ids = held[random() % held.size()];
        if (!ids.empty() && (ids.front() != ids.back() || ids.front() % 4 != thread)) ++wrong;
        ids = filled(1 + random() % (kMiB / 2), 4 * round + thread);
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
}

}  // namespace lmemo
