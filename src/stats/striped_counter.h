// A counter that many threads raise without sharing a cache line. Exact: the sum misses nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lmemo {

class StripedCounter {
 public:
  void add(uint64_t amount = 1) {
    stripes_[stripe_of_this_thread()].value.fetch_add(amount, std::memory_order_relaxed);
  }
  uint64_t total() const {
    uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Stripe {
    std::atomic<uint64_t> value{0};
  };
  static constexpr size_t kStripes = 16;

  static size_t stripe_of_this_thread() {
    static std::atomic<size_t> next{0};
    thread_local const size_t stripe = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return stripe;
  }

  std::array<Stripe, kStripes> stripes_;
};

}  // namespace lmemo
