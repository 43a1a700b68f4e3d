#include "store/byte_lru.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lmemo {
namespace {

TEST_CASE("the least recently used goes first when bytes are over the limit") {
  std::vector<std::string> evicted;
  ByteLru<std::string, int> lru(10, [&](auto& item) { evicted.push_back(item.key); });
  CHECK(lru.put("a", 1, 4));
  CHECK(lru.put("b", 2, 4));
  CHECK(*lru.find("a") == 1);
  CHECK(lru.put("c", 3, 4));
  CHECK(evicted == std::vector<std::string>{"b"});
  CHECK(lru.find("b") == nullptr);
  CHECK(lru.byte_count() == 8);
}

TEST_CASE("a peek is no use") {
  ByteLru<int, int> lru(2);
  lru.put(1, 10, 1);
  lru.put(2, 20, 1);
  CHECK(*lru.peek(1) == 10);
  CHECK(lru.peek(3) == nullptr);
  lru.put(3, 30, 1);
  CHECK(lru.peek(1) == nullptr);
  CHECK(*lru.peek(2) == 20);
}

TEST_CASE("a second put of a key replaces value and charge") {
  ByteLru<int, int> lru(10);
  lru.put(1, 10, 8);
  lru.put(1, 11, 2);
  CHECK(*lru.find(1) == 11);
  CHECK(lru.byte_count() == 2);
  CHECK(lru.size() == 1);
}

TEST_CASE("what alone is over the limit is not kept, and nothing goes for it") {
  ByteLru<int, int> lru(10);
  lru.put(1, 10, 10);
  CHECK_FALSE(lru.put(2, 20, 11));
  CHECK_FALSE(lru.put(1, 12, 11));
  CHECK(*lru.find(1) == 10);
}

TEST_CASE("without a limit everything stays until it is erased or cleared") {
  ByteLru<int, int> lru;
  for (int i = 0; i < 100; ++i) CHECK(lru.put(i, i, 1 << 30));
  CHECK(lru.size() == 100);
  CHECK(lru.erase(50));
  CHECK_FALSE(lru.erase(50));
  CHECK(lru.byte_count() == uint64_t{99} << 30);
  lru.shrink_to(uint64_t{10} << 30);
  CHECK(lru.size() == 10);
  CHECK(lru.items().front().key == 99);
  lru.clear();
  CHECK(lru.byte_count() == 0);
}

}  // namespace
}  // namespace lmemo
