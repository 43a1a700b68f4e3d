#include "base/reader_gate.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "support/test_scale.h"

namespace lmemo {
namespace {

TEST_CASE("what a writer took away is freed only when no reader may look at it") {
  constexpr int kAlive = 42;
  std::atomic<int*> shared{new int(kAlive)};
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::atomic<int> started{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      ++started;
      while (!is_over) {
        const ReaderGate::Pass pass;
        if (*shared.load(std::memory_order_seq_cst) != kAlive) ++wrong;
      }
    });
  while (started < 3) std::this_thread::yield();
  for (int64_t round = 0; round < test::scaled(2000, 100); ++round) {
    int* const old = shared.exchange(new int(kAlive), std::memory_order_seq_cst);
    ReaderGate::wait_for_readers();
    *old = -1;  // Nobody looks any more; a sanitizer would tell.
    delete old;
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  delete shared.load();
  CHECK(wrong == 0);
}

TEST_CASE("passes nest, and a gate without readers makes nobody wait") {
  ReaderGate::wait_for_readers();
  {
    const ReaderGate::Pass outer;
    { const ReaderGate::Pass inner; }
    CHECK(outer.lane().passes % 2 == 1);
  }
  ReaderGate::wait_for_readers();
}

TEST_CASE("a writer waits for a reader that is inside, however often others come and go") {
  std::atomic<int> step{0};
  std::thread reader([&] {
    const ReaderGate::Pass pass;
    step = 1;
    while (step != 2) std::this_thread::yield();
    step = 3;
  });
  while (step != 1) std::this_thread::yield();
  std::thread writer([&] {
    ReaderGate::wait_for_readers();
    CHECK(step == 3);
  });
  for (int i = 0; i < 1000; ++i) const ReaderGate::Pass pass;
  step = 2;
  reader.join();
  writer.join();
}

TEST_CASE("readers of the other side of a fork are forgotten") {
  std::atomic<int> step{0};
  std::thread reader([&] {
    const ReaderGate::Pass pass;  // Never ends in the child: its thread lives on in the parent only.
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ReaderGate::wait_for_readers();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  step = 2;
  reader.join();
}

}  // namespace
}  // namespace lmemo
