// Work on numbered things by several threads, with results in the order of the numbers and a bound on what is under way.
//
//   OrderedWork<LineBlock, RowBlock> work(threads, [] { return make_worker(); });  // Each thread has a worker of its own.
//   work.give(block);                    // Waits while too much is under way.
//   std::optional<…> done = work.take(); // The next in order, waiting for it; nullopt when nothing is under way.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace lmemo::dataset {

template <typename Input, typename Output>
class OrderedWork {
 public:
  using Worker = std::function<Output(Input)>;

  OrderedWork(unsigned threads, const std::function<Worker()>& make_worker) {
    for (unsigned i = 0; i < threads; ++i) {
      Worker worker = make_worker();
      try {
        threads_.emplace_back([this, worker = std::move(worker)] { run(worker); });
      } catch (const std::system_error&) {
        break;  // A machine without threads left: fewer do, and with none the caller does it all.
      }
    }
    if (threads_.empty()) own_worker_ = make_worker();
  }
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  size_t under_way() const { return slots_.size(); }
  size_t limit() const { return 2 * threads_.size() + 1; }

  void give(Input input) {
    auto* slot = &slots_.emplace_back();
    if (threads_.empty()) {
      slot->output.emplace(own_worker_(std::move(input)));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      slot->input.emplace(std::move(input));
      waiting_.push_back(slot);
    }
    changed_.notify_all();
  }

  std::optional<Output> take() {
    if (slots_.empty()) return std::nullopt;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return slots_.front().output.has_value(); });
    }
    std::optional<Output> output = std::move(slots_.front().output);
    slots_.pop_front();
    return output;
  }

 private:
  struct Slot {
    std::optional<Input> input;
    std::optional<Output> output;
  };

  void run(const Worker& worker) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_closed_ || !waiting_.empty(); });
      if (is_closed_) return;
      Slot* const slot = waiting_.front();
      waiting_.pop_front();
      Input input = std::move(*slot->input);
      slot->input.reset();
      lock.unlock();
      Output output = worker(std::move(input));
      lock.lock();
      slot->output.emplace(std::move(output));
      changed_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  Worker own_worker_;
  std::deque<Slot> slots_;  // The caller's; a deque keeps the others in place when one goes.
  std::mutex mutex_;        // Guards what is in the slots, and the rest.
  std::condition_variable changed_;
  std::deque<Slot*> waiting_;
  bool is_closed_ = false;
};

}  // namespace lmemo::dataset
