#include "base/thread_lanes.h"

#include <pthread.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace lmemo::thread_lanes {
namespace {

#if defined(__linux__) && defined(MEMBARRIER_CMD_PRIVATE_EXPEDITED)
bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }
bool register_for_barriers() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
bool barrier_for_all() {
  // A child of fork() may have to register anew.
  return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
         (register_for_barriers() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}
#else
bool register_for_barriers() { return false; }
bool barrier_for_all() { return false; }
#endif

class AllLanes {
 public:
  static AllLanes& instance() {
    static AllLanes* const all = [] {
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().after_fork_in_child(); });
      has_barrier_for_all = register_for_barriers();
      return new AllLanes;  // Never destroyed: threads may end late.
    }();
    return *all;
  }

  ThreadLane& begin() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (free_.empty()) {
        all_.push_back(new ThreadLane);
        free_.push_back(all_.back());
      }
      this_thread = free_.back();
      free_.pop_back();
    }
    // A key's destructor runs after those of thread_local objects, and again if one of them came back here.
    pthread_setspecific(key_, this_thread);
    return *this_thread;
  }

  void for_each(const std::function<void(ThreadLane&)>& visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (ThreadLane* lane : all_) visit(*lane);
  }

 private:
  AllLanes() {
    pthread_key_create(&key_, [](void* lane) { instance().end(static_cast<ThreadLane*>(lane)); });
  }
  void end(ThreadLane* lane) {
    this_thread = nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(lane);
  }
  // Only the forking thread lives on. What the others held stays held, their passes are over.
  void after_fork_in_child() {
    free_.clear();
    for (ThreadLane* lane : all_) {
      if (lane == this_thread) continue;
      const uint64_t passes = lane->passes.load(std::memory_order_relaxed);
      lane->passes.store(passes + passes % 2, std::memory_order_relaxed);
      free_.push_back(lane);
    }
    mutex_.unlock();
  }

  pthread_key_t key_{};
  std::mutex mutex_;  // Guards the rest.
  std::vector<ThreadLane*> all_, free_;
};

}  // namespace

constinit thread_local ThreadLane* this_thread = nullptr;
std::atomic<bool> has_barrier_for_all{false};

ThreadLane& begin() { return AllLanes::instance().begin(); }
void for_each(const std::function<void(ThreadLane&)>& visit) { AllLanes::instance().for_each(visit); }
void prepare_for_fork() { AllLanes::instance(); }

void heavy_fence() {
  AllLanes::instance();
  if (has_barrier_for_all.load(std::memory_order_relaxed)) {
    if (barrier_for_all()) return;
    // Allowed before, forbidden now, by a sandbox that the program put itself in. From here on readers fence for
    // themselves; whoever did not yet has long done so after this sleep.
    has_barrier_for_all.store(false, std::memory_order_seq_cst);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace lmemo::thread_lanes

namespace lmemo {

ThreadLane::Counters* ThreadLane::make_chunk(uint32_t number) {
  auto* const chunk = new Counters[kCountersPerChunk];
  chunks[number / kCountersPerChunk].store(chunk, std::memory_order_release);
  return chunk;
}

}  // namespace lmemo
