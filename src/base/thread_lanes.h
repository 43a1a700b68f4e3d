// A place for every thread that it alone writes and others only read: what readers would otherwise do with atomic
// additions, they do here with plain stores.
//
// Rejected: counters shared by threads. Each addition locks a cache line and holds up every load that follows it, so
// that the cache misses of one find no longer overlap with those of the next (bench/store: 150 ns against 50).
//
// A lane outlives its thread and is handed to the next one, so what was counted in it stays counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

namespace lmemo {

struct ThreadLane {
  // What a thread did with one held thing; held_things.h says what these mean.
  struct Counters {
    std::atomic<uint64_t> taken{0}, dropped{0};
    std::array<std::atomic<uint64_t>, 2> tallies{};
  };
  static constexpr uint32_t kCountersPerChunk = 256;
  static constexpr uint32_t kMaxChunks = 4096;

  // Odd while the thread is inside a pass (reader_gate.h).
  alignas(64) std::atomic<uint64_t> passes{0};
  // Made when the thread first needs them, never freed.
  std::array<std::atomic<Counters*>, kMaxChunks> chunks{};

  Counters& counters(uint32_t number) {
    Counters* const chunk = chunks[number / kCountersPerChunk].load(std::memory_order_relaxed);
    return (chunk != nullptr ? chunk : make_chunk(number))[number % kCountersPerChunk];
  }

 private:
  Counters* make_chunk(uint32_t number);
};

// Only its own thread calls this: nobody's addition is lost.
inline void add_alone(std::atomic<uint64_t>& counter, std::memory_order order = std::memory_order_relaxed) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, order);
}

namespace thread_lanes {

// One word of every thread's static storage; without initial-exec, a library that is loaded late would make a call for it.
#if defined(__GNUC__) && defined(__ELF__)
extern constinit thread_local ThreadLane* this_thread __attribute__((tls_model("initial-exec")));
#else
extern constinit thread_local ThreadLane* this_thread;
#endif
ThreadLane& begin();

inline ThreadLane& lane() { return this_thread != nullptr ? *this_thread : begin(); }
void for_each(const std::function<void(ThreadLane&)>& visit);

// Whoever has handlers around fork() and calls anything of this while holding a lock registers them after these.
void prepare_for_fork();

// Two sides that each write one thing and then read the other's: at least one of them sees what the other wrote. The
// light side costs nothing, because the heavy one makes every running thread pass a barrier (membarrier(2)).
extern std::atomic<bool> has_barrier_for_all;
inline void light_fence() {
  if (has_barrier_for_all.load(std::memory_order_relaxed))
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
void heavy_fence();

}  // namespace thread_lanes
}  // namespace lmemo
