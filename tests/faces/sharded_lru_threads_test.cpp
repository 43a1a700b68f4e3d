// The table as free-threaded Python uses it: 16 shards with a lock each.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "faces/sharded_lru.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

struct Node : LruLinks {
  static inline std::atomic<int> alive = 0;
  Node(uint64_t node_key, uint64_t node_value) : key(node_key), value(node_value) {
    hash = hash_of(key);
    byte_count = 10;
    ++alive;
  }
  ~Node() { --alive; }
  static uint64_t hash_of(uint64_t key) { return (key + 1) * 0x9E3779B97F4A7C15u; }
  const uint64_t key, value;
};

}  // namespace

TEST_CASE("many threads find, put and clear; every value is its key's, and no node is lost") {
  for (const uint64_t max_bytes : {uint64_t{0}, uint64_t{400}}) {
    ShardedLru<Node, std::mutex, 16> table(64, max_bytes);
    std::atomic<uint64_t> hits = 0, wrong = 0, tick = 1;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 6; ++seed)
      threads.emplace_back([&, seed] {
        std::mt19937_64 chance(seed);
        for (int step = 0; step < static_cast<int>(test::scaled(20'000)); ++step) {
          const uint64_t key = chance() % 200;
          const auto is_equal = [&](const Node& node) { return node.key == key; };
          uint64_t value = 0;
          if (table.find(Node::hash_of(key), ++tick, is_equal, [&](Node& node) { value = node.value; })) {
            ++hits;
            if (value % 200 != key) ++wrong;
          } else {
            delete_all(table.put(new Node(key, key + 200 * (chance() % 1000)), ++tick, is_equal).removed);
          }
          if (chance() % 5000 == 0) delete_all(table.take_all());
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(hits > 0);
    CHECK(wrong == 0);
    CHECK(table.entries() <= 64);
    if (max_bytes > 0) CHECK(table.byte_count() <= max_bytes);
    CHECK(static_cast<uint64_t>(Node::alive) == table.entries());
    delete_all(table.take_all());
    CHECK(Node::alive == 0);
    CHECK(table.entries() == 0);
    CHECK(table.byte_count() == 0);
  }
}

}  // namespace lmemo
