#include "long_work.h"

#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "reports.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

constexpr std::chrono::milliseconds kLookInterval{50};

class WatchedWork {
 public:
  // Runs in the thread of the work.
  void run(const std::function<void(const Watch&)>& work) {
    Watch watch;
    watch.should_stop = [this] { return stop_.load(std::memory_order_relaxed); };
    watch.on_progress = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      news_ = ProgressRecord{std::string(progress.phase), progress.done, progress.total,
                             std::string(progress.unit)};
    };
    try {
      work(watch);
    } catch (...) {
      failure_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_one();
  }

  // The rest runs in the thread that waits. True when the work is done.
  bool wait_a_little() {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, kLookInterval, [this] { return is_done_; });
  }
  std::optional<ProgressRecord> take_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
  }
  void stop() { stop_ = true; }
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<bool> stop_ = false;
  std::exception_ptr failure_;  // Written before is_done_, read after it.
  std::mutex mutex_;            // Guards what follows.
  std::condition_variable done_;
  bool is_done_ = false;
  std::optional<ProgressRecord> news_;
};

// Signals belong to the threads that Python knows.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void run_watched(nb::handle progress, const std::function<void(const Watch&)>& work) {
  if (!progress.is_none() && !PyCallable_Check(progress.ptr()))
    throw nb::type_error("progress: expected a callable that takes a lmemo.Progress");
  WatchedWork state;
  std::optional<nb::python_error> raised;
  const auto look = [&] {
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (progress.is_none()) return;
      if (std::optional<ProgressRecord> news = state.take_news()) progress(std::move(*news));
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      state.stop();
    }
  };

  std::thread thread = start_without_signals([&] { state.run(work); });
  for (bool is_done = false; !is_done;) {
    {
      const nb::gil_scoped_release without_gil;
      is_done = state.wait_a_little();
    }
    if (!raised) look();
  }
  thread.join();
  state.rethrow_failure();
  if (raised) throw std::move(*raised);
}

}  // namespace lmemo::python
