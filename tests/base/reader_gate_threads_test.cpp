#include "base/reader_gate.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <new>
#include <vector>

#include "support/test_scale.h"

namespace lmemo {
namespace {

TEST_CASE("what a writer took away is freed only when no reader may look at it") {
  constexpr int kAlive = 42;
  ReaderGate gate;
  std::atomic<int*> shared{new int(kAlive)};
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::atomic<int> started{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      ++started;
      while (!is_over) {
        const ReaderGate::Pass pass(gate);
        if (*shared.load(std::memory_order_seq_cst) != kAlive) ++wrong;
      }
    });
  while (started < 3) std::this_thread::yield();
  for (int64_t round = 0; round < test::scaled(2000, 100); ++round) {
    int* const old = shared.exchange(new int(kAlive), std::memory_order_seq_cst);
    gate.wait_for_readers();
    *old = -1;  // Nobody looks any more; a sanitizer would tell.
    delete old;
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  delete shared.load();
  CHECK(wrong == 0);
}

TEST_CASE("passes nest, and a gate without readers makes nobody wait") {
  ReaderGate gate;
  gate.wait_for_readers();
  {
    const ReaderGate::Pass outer(gate);
    const ReaderGate::Pass inner(gate);
  }
  gate.wait_for_readers();
}

TEST_CASE("readers of the other side of a fork are forgotten") {
  ReaderGate gate;
  alignas(ReaderGate::Pass) std::byte memory[sizeof(ReaderGate::Pass)];
  new (memory) ReaderGate::Pass(gate);  // Never ends here: its thread lives on in the parent only.
  gate.forget_readers_after_fork();
  gate.wait_for_readers();
}

}  // namespace
}  // namespace lmemo
