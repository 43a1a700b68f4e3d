// Readers pass without waiting for anyone; a writer that took something away waits until everyone who may still
// look at it has left, and only then frees it.
//
//   ReaderGate::Pass pass(gate);            // reader: a few nanoseconds, no shared cache line
//   use(pointer.load());
//
//   Thing* old = pointer.exchange(fresh);   // writer
//   gate.wait_for_readers();
//   delete old;
//
// Passes must be short: they pin what they found by other means and leave.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace lmemo {

class ReaderGate {
  static constexpr size_t kLanes = 32;
  struct alignas(64) Lane {
    std::atomic<int64_t> inside{0};
  };

 public:
  class Pass {
   public:
    explicit Pass(ReaderGate& gate) : lane_(gate.lanes_[lane_of_this_thread()]) {
      // Sequentially consistent, as is the writer's exchange: either the writer sees us inside, or we see
      // what the writer put in place.
      lane_.inside.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Pass() { lane_.inside.fetch_sub(1, std::memory_order_release); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Lane& lane_;
  };

  void wait_for_readers() {
    for (Lane& lane : lanes_)
      while (lane.inside.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  }

  // In a forked child only the forking thread lives on; passes of the others would never end.
  void forget_readers_after_fork() {
    for (Lane& lane : lanes_) lane.inside.store(0, std::memory_order_relaxed);
  }

 private:
  static size_t lane_of_this_thread() {
    static std::atomic<size_t> next{0};
    thread_local const size_t lane = next.fetch_add(1, std::memory_order_relaxed) % kLanes;
    return lane;
  }

  std::array<Lane, kLanes> lanes_;
};

}  // namespace lmemo
