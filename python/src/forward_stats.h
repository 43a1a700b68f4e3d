// BackendStats: what happened, counted exactly, from any number of threads.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>

#include "base/tick_clock.h"
#include "stats/striped_counter.h"

namespace lmemo::python {

// With the GIL, whoever counts holds it, and a plain store is exact. Without it the counter is striped.
class PythonCounter {
 public:
#ifdef Py_GIL_DISABLED
  void add(uint64_t amount = 1) { counter_.add(amount); }
  uint64_t total() const { return base_.load(std::memory_order_relaxed) + counter_.total(); }
  void set(uint64_t value) { base_.store(value - counter_.total(), std::memory_order_relaxed); }

 private:
  StripedCounter counter_;
  std::atomic<uint64_t> base_ = 0;
#else
  void add(uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t total() const { return value_.load(std::memory_order_relaxed); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
#endif
};

struct BackendStats {
  PythonCounter cache_hits;
  PythonCounter cache_misses;
  PythonCounter forward_passes;
  PythonCounter batches_sent;
  PythonCounter batched_prompts;
  std::atomic<uint64_t> max_batch_size = 0;
  PythonCounter scoring_ticks;
  std::atomic<double> scoring_base_seconds = 0;

  // Beyond the seven.
  PythonCounter failures;     // Computations that raised.
  PythonCounter shared;       // Hits that waited for another's forward pass.
  PythonCounter store_hits;   // Hits that came from the store.
  PythonCounter stored;       // Results that were put there.
  PythonCounter memory_only;  // Results that could not be.
  PythonCounter unreadable;   // Entries of the store that could not be read; each was a miss.

  double scoring_wall_s() const {
    return scoring_base_seconds.load() + ticks_to_seconds(scoring_ticks.total());
  }
  void set_scoring_wall_s(double seconds) {
    scoring_base_seconds.store(seconds - ticks_to_seconds(scoring_ticks.total()));
  }
  uint64_t total_lookups() const { return cache_hits.total() + cache_misses.total(); }
  double hit_rate() const {
    const uint64_t lookups = total_lookups();
    return lookups == 0 ? 0.0 : static_cast<double>(cache_hits.total()) / static_cast<double>(lookups);
  }
  double avg_batch_size() const {
    const uint64_t batches = batches_sent.total();
    return batches == 0 ? 0.0 : static_cast<double>(batched_prompts.total()) / static_cast<double>(batches);
  }

  void add_batch(uint64_t prompts) {
    batches_sent.add();
    batched_prompts.add(prompts);
    uint64_t largest = max_batch_size.load();
    while (prompts > largest && !max_batch_size.compare_exchange_weak(largest, prompts)) {}
  }
};

}  // namespace lmemo::python
