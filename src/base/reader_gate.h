// Readers pass without waiting for anyone; a writer that took something away waits until everyone who may still
// look at it has left, and only then frees it.
//
//   ReaderGate::Pass pass;                  // reader: two plain stores to a cache line of its own
//   use(pointer.load());
//
//   Thing* old = pointer.exchange(fresh);   // writer
//   ReaderGate::wait_for_readers();
//   delete old;
//
// There is one gate for all: passes must be short. They hold what they found by other means and leave.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_lanes.h"

namespace lmemo {

class ReaderGate {
 public:
  class Pass {
   public:
    Pass() : lane_(thread_lanes::lane()), passes_(lane_.passes.load(std::memory_order_relaxed)) {
      if (passes_ % 2 != 0) return;  // Inside another pass.
      lane_.passes.store(passes_ + 1, std::memory_order_relaxed);
      // The writer has the heavy one: either it sees us inside, or we see what it put in place.
      thread_lanes::light_fence();
    }
    ~Pass() {
      if (passes_ % 2 == 0) lane_.passes.store(passes_ + 2, std::memory_order_release);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    ThreadLane& lane() const { return lane_; }

   private:
    ThreadLane& lane_;
    const uint64_t passes_;
  };

  static void wait_for_readers() {
    thread_lanes::heavy_fence();
    std::vector<std::pair<ThreadLane*, uint64_t>> inside;
    thread_lanes::for_each([&](ThreadLane& lane) {
      const uint64_t passes = lane.passes.load(std::memory_order_acquire);
      if (passes % 2 != 0) inside.emplace_back(&lane, passes);
    });
    // A pass begun after the fence sees no old thing: waiting for those before it is enough.
    for (const auto& [lane, passes] : inside)
      while (lane->passes.load(std::memory_order_acquire) == passes) std::this_thread::yield();
  }
};

}  // namespace lmemo
