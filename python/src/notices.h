// Notices of a store on their way to logging.getLogger("lmemo").
//
// A notice may come from any thread, with locks of the store held and without the GIL. Taking the GIL there
// could deadlock against a thread that holds it and waits for the store. So a notice is queued, and the next
// call from Python delivers it before it returns.
#pragma once

#include <atomic>
#include <memory>

#include "lmemo/store.h"

namespace lmemo::python {

// A list without a lock: a process may fork at any time, and a child must not inherit a locked mutex.
class NoticeQueue {
 public:
  NoticeQueue() = default;
  NoticeQueue(const NoticeQueue&) = delete;
  NoticeQueue& operator=(const NoticeQueue&) = delete;
  ~NoticeQueue() { take(); }

  void push(const Notice& notice) {
    auto node = new Node{notice, newest_.load(std::memory_order_relaxed)};
    while (!newest_.compare_exchange_weak(node->older, node, std::memory_order_release)) {}
  }

  // Hands them to Python's logging. Needs the GIL; never raises.
  void deliver() {
    if (newest_.load(std::memory_order_relaxed) != nullptr) log(take());
  }

 private:
  struct Node {
    Notice notice;
    Node* older;
  };

  std::vector<Notice> take();  // Oldest first.
  static void log(const std::vector<Notice>& notices);

  std::atomic<Node*> newest_ = nullptr;
};

}  // namespace lmemo::python
