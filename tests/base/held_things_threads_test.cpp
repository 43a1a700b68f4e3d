#include "base/held_things.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/reader_gate.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

// Counts those that are alive.
struct Watched {
  explicit Watched(std::atomic<int>& count) : alive(count) { ++alive; }
  ~Watched() {
    value = -1;
    --alive;
  }
  std::atomic<int>& alive;
  int value = 42;
};

TEST_CASE("a thing lives until its owner let it go and the last hold is dropped") {
  std::atomic<int> alive{0};
  const uint32_t thing = held_things::add(std::make_shared<Watched>(alive));
  Hold first(thing);
  Hold second = first;
  held_things::let_go(thing);
  CHECK(alive == 1);
  first = Hold();
  CHECK(alive == 1);
  Hold third = std::move(second);
  CHECK(alive == 1);
  third = Hold();
  CHECK(alive == 0);

  const uint32_t other = held_things::add(std::make_shared<Watched>(alive));
  held_things::let_go(other);
  CHECK(alive == 0);
}

TEST_CASE("a hold may be dropped by another thread, and after the one that took it has ended") {
  std::atomic<int> alive{0};
  const uint32_t thing = held_things::add(std::make_shared<Watched>(alive));
  Hold hold;
  std::thread([&] { hold = Hold(thing); }).join();
  held_things::let_go(thing);
  std::thread([&] { Hold copy = hold; }).join();
  CHECK(alive == 1);
  std::thread([&] { hold = Hold(); }).join();
  CHECK(alive == 0);
}

TEST_CASE("a hold in a thread_local is dropped when its thread ends") {
  std::atomic<int> alive{0};
  const uint32_t thing = held_things::add(std::make_shared<Watched>(alive));
  std::thread([&] {
    thread_local Hold kept;
    kept = Hold(thing);
  }).join();
  held_things::let_go(thing);
  CHECK(alive == 0);
}

TEST_CASE("what threads tallied is added up, and starts from nothing for the next thing of that number") {
  for (int round = 0; round < 3; ++round) {
    const uint32_t thing = held_things::add({});
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) add_alone(thread_lanes::lane().counters(thing).tallies[1]);
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(held_things::total(thing, 0) == 0);
    CHECK(held_things::total(thing, 1) == 3000);
    held_things::let_go(thing);
  }
}

// As the store does it: find under the gate, hold, leave, use; hand some to other threads; the writer replaces the thing again and again.
TEST_CASE("nothing is freed while somebody holds it, and everything is freed in the end") {
  std::atomic<int> alive{0};
  struct Shared {
    std::atomic<Watched*> object{nullptr};
    uint32_t thing = 0;
  };
  std::atomic<Shared*> current{nullptr};
  const auto publish = [&] {
    auto object = std::make_shared<Watched>(alive);
    auto* fresh = new Shared;
    fresh->object = object.get();
    fresh->thing = held_things::add(std::move(object));
    Shared* old = current.exchange(fresh, std::memory_order_seq_cst);
    if (old == nullptr) return;
    ReaderGate::wait_for_readers();
    held_things::let_go(old->thing);
    delete old;
  };
  publish();
  std::mutex mutex;
  std::vector<std::pair<Hold, const Watched*>> handed_over;
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0}, started{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&, i] {
      ++started;
      for (int n = 0; !is_over; ++n) {
        Hold hold;
        const Watched* object = nullptr;
        {
          const ReaderGate::Pass pass;
          const Shared& shared = *current.load(std::memory_order_seq_cst);
          object = shared.object;
          hold = Hold(shared.thing);
        }
        if (object->value != 42) ++wrong;
        if (n % 7 == i) {
          const std::lock_guard<std::mutex> lock(mutex);
          if (handed_over.size() > 20) {
            if (handed_over.front().second->value != 42) ++wrong;
            handed_over.erase(handed_over.begin());
          }
          handed_over.emplace_back(std::move(hold), object);
        }
      }
    });
  while (started < 3) std::this_thread::yield();
  for (int64_t round = 0; round < test::scaled(2000, 100); ++round) publish();
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  handed_over.clear();
  CHECK(wrong == 0);
  CHECK(alive == 1);
  held_things::let_go(current.load()->thing);
  delete current.load();
  CHECK(alive == 0);
}

TEST_CASE("a forked child goes on with what it holds") {
  std::atomic<int> alive{0};
  const uint32_t thing = held_things::add(std::make_shared<Watched>(alive));
  Hold hold(thing);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    held_things::let_go(thing);
    const bool was_alive = alive == 1;
    hold = Hold();
    ::_exit(was_alive && alive == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(alive == 1);
  hold = Hold();
  held_things::let_go(thing);
  CHECK(alive == 0);
}

}  // namespace
}  // namespace lmemo
