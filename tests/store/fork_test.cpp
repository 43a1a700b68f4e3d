// fork() in the middle of everything: the child goes on with the Store object that it got from its parent.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "store/mixed_load.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

// A deadlock ends the process: it is a bug, and no test waits for it for ever.
constexpr unsigned kWatchdogSeconds = 300;
constexpr uint32_t kBackgroundKeys = 100;

StoreOptions small_batches() {
  StoreOptions options;
  options.max_bytes = 0;
  options.segment_bytes = 64 << 10;
  options.publish_seconds = 0.02;
  options.refresh_seconds = 0.001;
  return options;
}

LoadShape shape_of(uint32_t writer, uint32_t thread) {
  LoadShape shape;
  shape.writer = writer;
  shape.thread = thread;
  return shape;
}

bool has(Store& store, const LoadShape& shape, uint32_t number) {
  const Key key = load_key(shape, number);
  const std::optional<Hit> hit = store.find(key);
  return hit && version_in(key, hit->value()) == 1u;
}

bool put(Store& store, const LoadShape& shape, uint32_t number) {
  const Key key = load_key(shape, number);
  return store.put(key, bytes_of(versioned_value(key, 1))).ok();
}

// In the child: exits with the number of the first thing that went wrong, 0 if nothing did.
[[noreturn]] void live_as_child(Store& store, uint32_t child, uint32_t parents_count) {
  ::alarm(kWatchdogSeconds);
  const LoadShape mine = shape_of(100, child), parents = shape_of(0, 0);
  // Everything that the parent had put is found, published or not.
  for (uint32_t number = 0; number < parents_count; ++number)
    if (!has(store, parents, number)) ::_exit(1);
  for (uint32_t number = 0; number < 30; ++number)
    if (!put(store, mine, number)) ::_exit(2);
  for (uint32_t number = 0; number < 30; ++number)
    if (!has(store, mine, number)) ::_exit(3);
  if (!store.flush().ok()) ::_exit(4);
  if (!store.compact().ok()) ::_exit(5);
  for (uint32_t number = 0; number < parents_count; ++number)
    if (!has(store, parents, number)) ::_exit(6);
  if (store.stats().damaged_records != 0) ::_exit(7);
  ::_exit(0);
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a forked child finds, puts and flushes while its parent goes on") {
  ::alarm(kWatchdogSeconds);
  const TempDirectory directory;
  const int64_t children = scaled(9, 3);
  uint32_t count = 0;
  uint32_t background_count[2] = {};
  {
    auto store = open_store(directory / "store", small_batches());
    REQUIRE(store.ok());
    // Others put, find, flush and compact at whatever moment fork() comes.
    std::atomic<bool> is_over{false};
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (uint32_t thread : {1u, 2u})
      threads.emplace_back([&, thread] {
        for (uint32_t turn = 0; !is_over; ++turn) {
          const uint32_t number = turn % kBackgroundKeys;
          if (!put(**store, shape_of(0, thread), number)) ++failed;
          if (!has(**store, shape_of(0, thread), number / 2)) ++failed;
          if (number % 50 == 0 && !(*store)->flush().ok()) ++failed;
          background_count[thread - 1] = std::min(turn + 1, kBackgroundKeys);
        }
      });
    threads.emplace_back([&] {
      while (!is_over) {
        if (!(*store)->compact().ok()) ++failed;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // Others want the lock, too.
      }
    });

    std::vector<pid_t> running;
    for (int64_t child = 0; child < children; ++child) {
      for (int i = 0; i < 20; ++i, ++count) REQUIRE(put(**store, shape_of(0, 0), count));
      const pid_t pid = ::fork();
      REQUIRE(pid >= 0);
      if (pid == 0) live_as_child(**store, static_cast<uint32_t>(child), count);
      running.push_back(pid);
      if (child % 3 == 2) {
        for (const pid_t each : running) CHECK(exit_code_of(each) == 0);
        running.clear();
      }
    }
    for (const pid_t each : running) CHECK(exit_code_of(each) == 0);
    is_over = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(failed == 0);
  }
  auto store = open_store(directory / "store", small_batches());
  REQUIRE(store.ok());
  for (uint32_t number = 0; number < count; ++number) REQUIRE(has(**store, shape_of(0, 0), number));
  for (uint32_t thread : {1u, 2u})
    for (uint32_t number = 0; number < background_count[thread - 1]; ++number)
      REQUIRE(has(**store, shape_of(0, thread), number));
  for (int64_t child = 0; child < children; ++child)
    for (uint32_t number = 0; number < 30; ++number)
      REQUIRE(has(**store, shape_of(100, static_cast<uint32_t>(child)), number));
  // And nothing twice.
  CHECK((*store)->stats().entries ==
        count + background_count[0] + background_count[1] + 30 * static_cast<uint64_t>(children));
  const Result<VerifyReport> verified = (*store)->verify();
  REQUIRE(verified.ok());
  CHECK(verified->is_clean());
  ::alarm(0);
}

TEST_CASE("a child that lives on holds no lock of its parent") {
  ::alarm(kWatchdogSeconds);
  const TempDirectory directory;
  // The parent of the test dies with a batch that it did not publish; its child lives on, with the same Store.
  int alive[2], told[2];
  REQUIRE(::pipe2(alive, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(told, O_CLOEXEC) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    ::close(alive[1]);
    StoreOptions options;
    auto store = open_store(directory / "store", options);
    if (!store.ok() || !put(**store, shape_of(0, 0), 0)) ::_exit(1);
    if (::fork() == 0) {
      char byte;
      ::close(told[1]);
      [[maybe_unused]] const ssize_t end = ::read(alive[0], &byte, 1);  // Until the test is over.
      ::_exit(0);
    }
    ::close(told[1]);
    ::raise(SIGKILL);
  }
  ::close(told[1]);
  char byte;
  CHECK(::read(told[0], &byte, 1) == 0);
  CHECK(exit_code_of(parent) == 128 + SIGKILL);
  {
    // Promise 6: the next open takes over what the dead parent left, whoever was forked from it.
    auto store = open_store(directory / "store", StoreOptions{});
    REQUIRE(store.ok());
    CHECK(has(**store, shape_of(0, 0), 0));
    CHECK((*store)->stats().salvaged_records == 1);
    CHECK((*store)->compact().ok());
  }
  CHECK(std::filesystem::is_empty(directory / "store" / "writing"));
  for (const int end : {alive[0], alive[1], told[0]}) ::close(end);
  ::alarm(0);
}

}  // namespace
}  // namespace lmemo::test
