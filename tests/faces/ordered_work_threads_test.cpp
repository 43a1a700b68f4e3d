// Under TSan: results in order whatever the threads do, ends with work under way.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "faces/dataset/ordered_work.h"
#include "support/test_scale.h"

using lmemo::dataset::OrderedWork;
using lmemo::test::scaled;

namespace {

// Some pieces take longer than others, so that the order of their ends is not that of their beginnings.
std::string slowly(std::unique_ptr<size_t> number) {
  if (*number % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return std::to_string(*number);
}

}  // namespace

TEST_CASE("results come in the order in which the work was given, for any number of threads") {
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    std::atomic<unsigned> workers = 0;
    OrderedWork<std::unique_ptr<size_t>, std::string> work(threads, [&] {
      ++workers;
      return [](std::unique_ptr<size_t> number) { return slowly(std::move(number)); };
    });
    CHECK(workers == std::max(threads, 1u));
    CHECK(work.limit() == 2 * threads + 1);
    size_t given = 0, taken = 0;
    const auto all = static_cast<size_t>(scaled(2000));
    while (taken < all) {
      while (given < all && work.under_way() < work.limit()) work.give(std::make_unique<size_t>(given++));
      const std::optional<std::string> done = work.take();
      REQUIRE(done);
      CHECK(*done == std::to_string(taken++));
    }
    CHECK(!work.take());
    CHECK(work.under_way() == 0);
  }
}

TEST_CASE("every worker belongs to one thread") {
  OrderedWork<size_t, size_t> work(4, [] {
    // Not guarded by anything: two threads in one worker are a data race.
    return [calls = std::make_shared<size_t>(0)](size_t number) { return number + (*calls)++ * 0; };
  });
  for (int64_t round = 0; round < scaled(300); ++round) {
    for (size_t number = 0; number < work.limit(); ++number) work.give(number);
    for (size_t number = 0; number < work.limit(); ++number) CHECK(work.take() == number);
  }
}

TEST_CASE("it ends with work under way, done or not, and forgets it") {
  std::atomic<size_t> alive = 0;
  struct Counted {
    explicit Counted(std::atomic<size_t>* counter) : count(counter) { ++*count; }
    Counted(Counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
    ~Counted() {
      if (count != nullptr) --*count;
    }
    std::atomic<size_t>* count;
  };
  for (int64_t round = 0; round < scaled(100); ++round) {
    OrderedWork<Counted, Counted> work(3, [] { return [](Counted one) { return one; }; });
    for (size_t number = 0; number < 20; ++number) work.give(Counted(&alive));
    if (round % 2 == 0) CHECK(work.take());
  }
  CHECK(alive == 0);
}
