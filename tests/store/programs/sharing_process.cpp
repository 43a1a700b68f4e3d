// sharing_process write|read|evict DIRECTORY NUMBER MAX_BYTES [TARGET_BYTES]: one of several processes that share a
// store, until standard input ends. Says what it did in lines:
//   flushed N          write: entries 0 … N-1 of this writer were put, and flush returned
//   saw WRITER N       read: entry N of that writer was found, and right
//   missed WRITER N    read: entry N is not there, though it was before
//   wrong …            any: ends with exit code 1
//   evicted N          evict or write: how many entries went in all
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "store/mixed_load.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

bool is_over() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) != 0;
}

void say(const char* format, uint64_t a, uint64_t b) {
  char line[100];
  const int length = std::snprintf(line, sizeof line, format, static_cast<unsigned long long>(a),
                                   static_cast<unsigned long long>(b));
  if (::write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) std::_Exit(3);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "sharing_process: %s\n", what.c_str());
  std::_Exit(1);
}

LoadShape shape_of(uint32_t writer) {
  LoadShape shape;
  shape.writer = writer;
  return shape;
}

void flush_and_say(Store& store, uint32_t number) {
  if (Status flushed = store.flush(); !flushed.ok()) fail("flush: " + flushed.error().describe());
  say("flushed %llu\n", number, 0);
}

void write(const std::function<std::unique_ptr<Store>()>& open, uint32_t writer) {
  Dice dice(writer);
  uint64_t evicted = 0;
  uint32_t number = 0;
  while (!is_over()) {
    const std::unique_ptr<Store> store = open();
    for (bool is_full = false; !is_full && !is_over();) {
      for (uint64_t left = 1 + dice.below(40); left > 0 && !is_full; --left) {
        const Key key = load_key(shape_of(writer), number);
        const Status put = store->put(key, bytes_of(versioned_value(key, 1)));
        // What a run puts is protected from its own evictions, so it is told when it alone fills the store: the next run
        // may put more.
        is_full = !put.ok() && put.error().code == ErrorCode::no_space;
        if (!put.ok() && !is_full) fail("put: " + put.error().describe());
        if (put.ok()) ++number;
      }
      flush_and_say(*store, number);
    }
    evicted += store->stats().evicted;
  }
  say("evicted %llu\n", evicted, 0);
}

// Looks for the next entry of each writer until it comes, and at old ones meanwhile. Never opens the store again.
void read(Store& store, bool may_skip) {
  uint32_t next[2] = {};
  Dice dice(7);
  while (!is_over())
    for (const uint32_t writer : {0u, 1u}) {
      const uint32_t old = next[writer] == 0 ? 0 : static_cast<uint32_t>(dice.below(next[writer]));
      for (const uint32_t number : {next[writer], old}) {
        const Key key = load_key(shape_of(writer), number);
        const std::optional<Hit> hit = store.find(key);
        if (hit && version_in(key, hit->value()) != 1u) fail("wrong value");
        if (hit && number == next[writer]) say("saw %llu %llu\n", writer, next[writer]++);
        if (!hit && number < next[writer]) say("missed %llu %llu\n", writer, number);
      }
      // Where entries are evicted, the next one may be gone before it was seen.
      if (may_skip && dice.one_in(50)) next[writer] += static_cast<uint32_t>(dice.below(3));
    }
}

void evict(Store& store, uint64_t target_bytes) {
  while (!is_over()) {
    const Result<RemovalReport> report = store.evict(target_bytes);
    if (!report.ok()) fail("evict: " + report.error().describe());
    ::usleep(20'000);
  }
  say("evicted %llu\n", store.stats().evicted, 0);
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const std::string role = words[1];
  StoreOptions options;
  options.segment_bytes = 256 << 10;
  options.publish_seconds = 0.1;
  options.refresh_seconds = 0.005;
  options.max_bytes = std::strtoull(words[4], nullptr, 10);
  options.read_only = role == "read";
  const auto open = [&] {
    Result<std::unique_ptr<Store>> store = open_store(words[2], options);
    if (!store.ok()) fail("open: " + store.error().describe());
    return std::move(*store);
  };
  if (role == "write") write(open, static_cast<uint32_t>(std::atoi(words[3])));
  if (role == "read") read(*open(), options.max_bytes > 0);
  if (role == "evict") evict(*open(), count > 5 ? std::strtoull(words[5], nullptr, 10) : 0);
}
