#include "faces/sharded_lru.h"

#include <doctest/doctest.h>

#include <list>
#include <random>
#include <string>
#include <vector>

namespace lmemo {
namespace {

struct Node : LruLinks {
  Node(std::string node_key, int node_value, uint64_t bytes) : key(std::move(node_key)), value(node_value) {
    hash = std::hash<std::string>()(key) * 0x9E3779B97F4A7C15u;
    byte_count = bytes;
  }
  const std::string key;
  const int value;
};

template <size_t kShards>
struct Table {
  ShardedLru<Node, NoMutex, kShards> lru;
  uint64_t tick = 0;

  Table(uint64_t max_entries, uint64_t max_bytes) : lru(max_entries, max_bytes) {}
  ~Table() { delete_all(lru.take_all()); }

  void put(const std::string& key, int value, uint64_t bytes = 1) {
    delete_all(lru.put(new Node(key, value, bytes), ++tick, [&](const Node& node) { return node.key == key; })
                   .removed);
  }
  int get(const std::string& key) {
    int value = -1;
    lru.find(
        Node(key, 0, 0).hash, ++tick, [&](const Node& node) { return node.key == key; },
        [&](Node& node) { value = node.value; });
    return value;
  }
};

// The same in the plainest way: newest first.
struct Model {
  struct Item {
    std::string key;
    int value;
    uint64_t bytes;
  };
  const uint64_t max_entries, max_bytes;
  std::list<Item> items;

  uint64_t byte_count() const {
    uint64_t sum = 0;
    for (const Item& item : items) sum += item.bytes;
    return sum;
  }
  void put(const std::string& key, int value, uint64_t bytes) {
    items.remove_if([&](const Item& item) { return item.key == key; });
    if (max_bytes > 0 && bytes > max_bytes) return;
    items.push_front({key, value, bytes});
    while (items.size() > max_entries || (max_bytes > 0 && byte_count() > max_bytes)) items.pop_back();
  }
  int get(const std::string& key) {
    for (auto item = items.begin(); item != items.end(); ++item)
      if (item->key == key) {
        items.splice(items.begin(), items, item);
        return items.front().value;
      }
    return -1;
  }
};

template <size_t kShards>
void check_against_the_model(uint64_t max_entries, uint64_t max_bytes) {
  std::mt19937 chance(static_cast<unsigned>(max_entries + max_bytes + kShards));
  Table<kShards> table(max_entries, max_bytes);
  Model model{max_entries, max_bytes, {}};
  for (int step = 0; step < 5000; ++step) {
    const std::string key = std::to_string(chance() % 60);
    if (chance() % 2 == 0) {
      const uint64_t bytes = chance() % 40;
      table.put(key, step, bytes);
      model.put(key, step, bytes);
    } else {
      REQUIRE(table.get(key) == model.get(key));
    }
    REQUIRE(table.lru.entries() == model.items.size());
    REQUIRE(table.lru.byte_count() == model.byte_count());
  }
}

}  // namespace

TEST_CASE("whatever the number of shards, the table does what one plain list does") {
  for (const auto& [max_entries, max_bytes] :
       {std::pair(1, 0), {10, 0}, {1000, 0}, {1000, 200}, {5, 100}, {1000, 30}}) {
    check_against_the_model<1>(static_cast<uint64_t>(max_entries), static_cast<uint64_t>(max_bytes));
    check_against_the_model<16>(static_cast<uint64_t>(max_entries), static_cast<uint64_t>(max_bytes));
  }
}

TEST_CASE("a put is refused if the shard changed since its version was read") {
  Table<1> table(10, 0);
  const auto nothing = [](const Node&) { return false; };
  const uint64_t version = table.lru.find_candidates(0, [](Node&) {});
  table.put("a", 1);
  auto* const late = new Node("b", 2, 1);
  CHECK(table.lru.put(late, 9, nothing, version).is_refused);
  const uint64_t now = table.lru.find_candidates(0, [](Node&) {});
  CHECK_FALSE(table.lru.put(late, 9, nothing, now).is_refused);
  CHECK(table.get("b") == 2);
}

TEST_CASE("candidates are the nodes of that hash and no others") {
  Table<16> table(100, 0);
  for (int n = 0; n < 50; ++n) table.put(std::to_string(n), n);
  std::vector<int> seen;
  table.lru.find_candidates(Node("7", 0, 0).hash, [&](const Node& node) { seen.push_back(node.value); });
  CHECK(seen == std::vector<int>{7});
}

}  // namespace lmemo
