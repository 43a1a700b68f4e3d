#include "lmemo/hold.h"

#include <array>
#include <mutex>
#include <vector>

#include "base/held_things.h"

namespace lmemo {
namespace {

struct Thing {
  std::atomic<bool> is_let_go{false};
  std::shared_ptr<const void> object;        // Guarded by the mutex.
  std::array<uint64_t, 2> tallies_before{};  // What former things of this number left in the lanes.
};

// Numbers go up from 1; those of things that are free are used again. Memory is never given back, so that whoever
// dropped the last hold may still look at is_let_go.
std::array<std::atomic<Thing*>, ThreadLane::kMaxChunks> chunks{};

struct Guarded {
  std::mutex mutex;  // Guards the rest.
  uint32_t next = 1;
  std::vector<uint32_t> free;

  static Guarded& instance() {
    static Guarded* const guarded = [] {
      thread_lanes::prepare_for_fork();
      pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                     [] { instance().mutex.unlock(); });
      return new Guarded;
    }();
    return *guarded;
  }
};

Thing& thing_of(uint32_t number) {
  return chunks[number / ThreadLane::kCountersPerChunk].load(
      std::memory_order_acquire)[number % ThreadLane::kCountersPerChunk];
}

template <typename Which>
uint64_t sum(uint32_t number, Which which) {
  uint64_t total = 0;
  thread_lanes::for_each([&](ThreadLane& lane) {
    ThreadLane::Counters* const chunk =
        lane.chunks[number / ThreadLane::kCountersPerChunk].load(std::memory_order_acquire);
    if (chunk != nullptr)
      total += which(chunk[number % ThreadLane::kCountersPerChunk]).load(std::memory_order_acquire);
  });
  return total;
}

void free_if_not_held(uint32_t number) {
  std::shared_ptr<const void> object;  // Freed after the lock: that may take long, and locks of its own.
  Guarded& guarded = Guarded::instance();
  const std::lock_guard<std::mutex> lock(guarded.mutex);
  Thing& thing = thing_of(number);
  if (!thing.is_let_go.load(std::memory_order_relaxed)) return;
  const uint64_t dropped = sum(number, [](auto& counters) -> auto& { return counters.dropped; });
  const uint64_t taken = sum(number, [](auto& counters) -> auto& { return counters.taken; });
  if (dropped != taken) return;
  object = std::move(thing.object);
  thing.is_let_go.store(false, std::memory_order_relaxed);
  guarded.free.push_back(number);
}

}  // namespace

void Hold::take(uint32_t thing) { add_alone(thread_lanes::lane().counters(thing).taken); }

void Hold::drop(uint32_t thing) {
  add_alone(thread_lanes::lane().counters(thing).dropped, std::memory_order_release);
  // let_go() has the heavy one: either it counts this drop, or we see that we may be the last.
  thread_lanes::light_fence();
  if (thing_of(thing).is_let_go.load(std::memory_order_relaxed)) [[unlikely]]
    free_if_not_held(thing);
}

namespace held_things {

void prepare_for_fork() { Guarded::instance(); }

uint32_t add(std::shared_ptr<const void> object) {
  Guarded& guarded = Guarded::instance();
  const std::lock_guard<std::mutex> lock(guarded.mutex);
  uint32_t number = 0;
  if (!guarded.free.empty()) {
    number = guarded.free.back();
    guarded.free.pop_back();
  } else {
    constexpr uint32_t kPerChunk = ThreadLane::kCountersPerChunk;
    if (guarded.next == kPerChunk * ThreadLane::kMaxChunks) return 0;
    number = guarded.next++;
    std::atomic<Thing*>& chunk = chunks[number / kPerChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr)
      chunk.store(new Thing[kPerChunk], std::memory_order_release);
  }
  Thing& thing = thing_of(number);
  thing.object = std::move(object);
  for (size_t which = 0; which < thing.tallies_before.size(); ++which)
    thing.tallies_before[which] =
        sum(number, [which](auto& counters) -> auto& { return counters.tallies[which]; });
  return number;
}

void let_go(uint32_t thing) {
  if (thing == 0) return;
  thing_of(thing).is_let_go.store(true, std::memory_order_seq_cst);
  thread_lanes::heavy_fence();
  free_if_not_held(thing);
}

uint64_t total(uint32_t thing, size_t which) {
  return sum(thing, [which](auto& counters) -> auto& { return counters.tallies[which]; }) -
         thing_of(thing).tallies_before[which];
}

}  // namespace held_things
}  // namespace lmemo
