// One contract for the disk store and the memory store: every case runs against both.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lmemo/store.h"
#include "support/store_support.h"
#include "support/temp_directory.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

struct DiskKit {
  TempDirectory directory;
  std::unique_ptr<Store> store = opened();
  std::unique_ptr<Store> opened(StoreOptions options = {}) {
    Result<std::unique_ptr<Store>> result = open_store(directory / "store", options);
    REQUIRE(result.ok());
    return std::move(*result);
  }
};

struct MemoryKit {
  std::unique_ptr<Store> store = make_memory_store();
};

}  // namespace

TEST_CASE_TEMPLATE("what was put is found, whatever its size", Kit, DiskKit, MemoryKit) {
  Kit kit;
  for (const size_t size : {0, 1, 7, 8, 9, 255, 4096, 100'000, 3'000'000}) {
    const Key key = key_of("tokens", static_cast<int>(size));
    const std::string value = value_of(size);
    CHECK(kit.store->put(key, bytes_of(value)).ok());
    CHECK(found(*kit.store, key) == value);
  }
  CHECK(kit.store->flush().ok());
  for (const size_t size : {0, 1, 7, 8, 9, 255, 4096, 100'000, 3'000'000})
    CHECK(found(*kit.store, key_of("tokens", static_cast<int>(size))) == value_of(size));
}

TEST_CASE_TEMPLATE("a touch tells the size, counts as a use and looks at nothing", Kit, DiskKit, MemoryKit) {
  Kit kit;
  CHECK_FALSE(kit.store->touch(key_of("tokens", 1)));
  CHECK(kit.store->put(key_of("tokens", 1), bytes_of("four")).ok());
  CHECK(kit.store->touch(key_of("tokens", 1)) == 4);
  CHECK(kit.store->flush().ok());
  CHECK(kit.store->touch(key_of("tokens", 1)) == 4);
  CHECK(kit.store->erase(key_of("tokens", 1)).ok());
  CHECK_FALSE(kit.store->touch(key_of("tokens", 1)));
}

TEST_CASE_TEMPLATE("what was never put is a miss, and is counted", Kit, DiskKit, MemoryKit) {
  Kit kit;
  CHECK_FALSE(kit.store->find(key_of("tokens", 1)));
  CHECK_FALSE(kit.store->contains(key_of("tokens", 1)));
  CHECK(kit.store->put(key_of("tokens", 1), bytes_of("x")).ok());
  CHECK(kit.store->find(key_of("tokens", 1)));
  CHECK_FALSE(kit.store->find(key_of("forward", 1)));
  const StoreStats stats = kit.store->stats();
  CHECK(stats.hits == 1);
  CHECK(stats.misses == 2);
  CHECK(stats.puts == 1);
  CHECK(stats.counters.at("tokens").hits == 1);
  CHECK(stats.counters.at("tokens").put_bytes == 1);
  CHECK(kit.store->flush().ok());
  CHECK(kit.store->stats().hits == 1);  // Also after the batch in which it was found became a segment.
}

TEST_CASE_TEMPLATE("the later put wins, before and after a flush", Kit, DiskKit, MemoryKit) {
  Kit kit;
  const Key key = key_of("tokens", 1);
  CHECK(kit.store->put(key, bytes_of("first")).ok());
  CHECK(kit.store->put(key, bytes_of("second")).ok());
  CHECK(found(*kit.store, key) == "second");
  CHECK(kit.store->flush().ok());
  CHECK(found(*kit.store, key) == "second");
  CHECK(kit.store->put(key, bytes_of("third")).ok());
  CHECK(found(*kit.store, key) == "third");
  CHECK(kit.store->flush().ok());
  CHECK(found(*kit.store, key) == "third");
  CHECK(kit.store->stats().entries == 1);
}

TEST_CASE_TEMPLATE("put_many is as good as many puts", Kit, DiskKit, MemoryKit) {
  Kit kit;
  std::vector<Key> keys;
  std::vector<std::string> values;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back(key_of("tokens", i));
    values.push_back(value_of(static_cast<size_t>(i) * 3));
  }
  std::vector<Item> items;
  for (size_t i = 0; i < keys.size(); ++i) items.push_back({&keys[i], bytes_of(values[i])});
  CHECK(kit.store->put_many(items).ok());
  for (size_t i = 0; i < keys.size(); ++i) CHECK(found(*kit.store, keys[i]) == values[i]);
  CHECK(kit.store->stats().puts == 1000);
}

TEST_CASE_TEMPLATE("what was erased is gone until it is put again", Kit, DiskKit, MemoryKit) {
  Kit kit;
  const Key key = key_of("tokens", 1);
  CHECK(*kit.store->erase(key) == false);
  CHECK(kit.store->put(key, bytes_of("x")).ok());
  CHECK(kit.store->flush().ok());
  CHECK(*kit.store->erase(key) == true);
  CHECK_FALSE(kit.store->find(key));
  CHECK(*kit.store->erase(key) == false);
  CHECK(kit.store->flush().ok());
  CHECK_FALSE(kit.store->find(key));
  CHECK(kit.store->put(key, bytes_of("y")).ok());
  CHECK(found(*kit.store, key) == "y");
  CHECK(kit.store->stats().erased == 1);
}

TEST_CASE_TEMPLATE("a hit stays valid whatever happens to the store", Kit, DiskKit, MemoryKit) {
  Kit kit;
  const std::string value = value_of(50'000);
  CHECK(kit.store->put(key_of("tokens", 1), bytes_of(value)).ok());
  const std::optional<Hit> before_flush = kit.store->find(key_of("tokens", 1));
  CHECK(kit.store->flush().ok());
  const std::optional<Hit> after_flush = kit.store->find(key_of("tokens", 1));
  CHECK(kit.store->clear().ok());
  CHECK_FALSE(kit.store->find(key_of("tokens", 1)));
  kit.store.reset();
  CHECK(text_of(before_flush->value()) == value);
  CHECK(text_of(after_flush->value()) == value);
}

TEST_CASE_TEMPLATE("a scan shows every entry once, by kind and by field", Kit, DiskKit, MemoryKit) {
  Kit kit;
  for (int i = 0; i < 20; ++i) {
    const Key key = *Key::of("tokens", {{"section", i}, {"tokenizer", i % 2 ? "gpt2" : "llama"}});
    CHECK(kit.store->put(key, bytes_of("x")).ok());
    if (i == 10) CHECK(kit.store->flush().ok());
  }
  CHECK(kit.store->put(key_of("forward", 1), bytes_of("y")).ok());
  CHECK(kit.store->put(key_of("forward", 1), bytes_of("z")).ok());

  const auto sections = [&](const ScanFilter& filter) {
    std::multiset<std::string> seen;
    CHECK(kit.store
              ->scan(filter,
                     [&](const EntryInfo& entry) {
                       const Result<Key> key = entry.key();
                       REQUIRE(key.ok());
                       CHECK(key->digest() == entry.digest);
                       CHECK(key->kind() == entry.kind);
                       seen.insert(entry.digest.hex());
                       return true;
                     })
              .ok());
    return seen;
  };
  CHECK(sections({}).size() == 21);
  CHECK(sections({"tokens", {}}).size() == 20);
  CHECK(sections({"tokens", {{"tokenizer", "gpt2"}}}).size() == 10);
  CHECK(sections({"tokens", {{"tokenizer", "gpt2"}, {"section", 3}}}).size() == 1);
  CHECK(sections({"tokens", {{"tokenizer", "other"}}}).empty());
  CHECK(sections({"", {{"section", 3}}}).size() == 1);

  const Result<RemovalReport> removed = kit.store->erase_matching({"tokens", {{"tokenizer", "gpt2"}}});
  REQUIRE(removed.ok());
  CHECK(removed->entries == 10);
  CHECK(sections({"tokens", {}}).size() == 10);
  CHECK(found(*kit.store, key_of("forward", 1)) == "z");
}

TEST_CASE_TEMPLATE("explain names the fields in which a request differs from its nearest neighbour", Kit,
                   DiskKit, MemoryKit) {
  Kit kit;
  const auto key = [](int section, const char* tokenizer, bool eos) {
    return *Key::of("tokens", {{"section", section}, {"tokenizer", tokenizer}, {"eos", eos}});
  };
  CHECK_FALSE(kit.store->explain(key(1, "a1b2", true))->nearest);
  CHECK(kit.store->put(key(1, "a1b2", true), bytes_of("x")).ok());
  CHECK(kit.store->put(key(2, "a1b2", false), bytes_of("x")).ok());
  CHECK(kit.store->flush().ok());
  CHECK(kit.store->put(key(3, "zzzz", true), bytes_of("x")).ok());

  const Result<Explanation> miss = kit.store->explain(key(1, "c3d4", true));
  REQUIRE(miss.ok());
  CHECK_FALSE(miss->is_hit);
  CHECK(miss->candidates == 3);
  CHECK(*miss->nearest == key(1, "a1b2", true));
  REQUIRE(miss->differing.size() == 1);
  CHECK(miss->describe() == "miss: tokenizer changed: \"a1b2\" → \"c3d4\"");
  CHECK(kit.store->explain(key(2, "a1b2", false))->is_hit);
  CHECK(kit.store->explain(key_of("forward", 1))->describe() == "miss: no entry of this kind");
}

TEST_CASE_TEMPLATE("clear empties one kind or all", Kit, DiskKit, MemoryKit) {
  Kit kit;
  for (int i = 0; i < 5; ++i) {
    CHECK(kit.store->put(key_of("tokens", i), bytes_of("x")).ok());
    CHECK(kit.store->put(key_of("forward", i), bytes_of("x")).ok());
  }
  CHECK(kit.store->clear("tokens")->entries == 5);
  CHECK_FALSE(kit.store->find(key_of("tokens", 1)));
  CHECK(kit.store->find(key_of("forward", 1)));
  CHECK(kit.store->clear()->entries == 5);
  CHECK(kit.store->stats().entries == 0);
  CHECK_FALSE(kit.store->find(key_of("forward", 1)));
  CHECK(kit.store->put(key_of("forward", 1), bytes_of("y")).ok());
  CHECK(found(*kit.store, key_of("forward", 1)) == "y");
}

TEST_CASE_TEMPLATE("prune drops by age and spares the rest", Kit, DiskKit, MemoryKit) {
  Kit kit;
  CHECK(kit.store->put(key_of("tokens", 1), bytes_of("x")).ok());
  CHECK(kit.store->prune(3600)->entries == 0);
  CHECK(kit.store->find(key_of("tokens", 1)));
  CHECK_FALSE(kit.store->prune(-1).ok());
  CHECK(kit.store->prune(0, "forward")->entries == 0);
}

TEST_CASE_TEMPLATE("reserved kinds cannot be put", Kit, DiskKit, MemoryKit) {
  Kit kit;
  const Status status = kit.store->put(key_of("lmemo.access", 1), bytes_of("x"));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::invalid_argument);
}

TEST_CASE_TEMPLATE("a random history agrees with a map", Kit, DiskKit, MemoryKit) {
  Kit kit;
  std::map<int, std::string> model;
  uint64_t state = 42;
  const auto random = [&](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  for (int step = 0; step < 3000; ++step) {
    const int number = static_cast<int>(random(60));
    const Key key = key_of("tokens", number);
    switch (random(12)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::string value = value_of(random(2000)) + std::to_string(step);
        CHECK(kit.store->put(key, bytes_of(value)).ok());
        model[number] = value;
        break;
      }
      case 4:
      case 5: CHECK(*kit.store->erase(key) == (model.erase(number) == 1)); break;
      case 6:
        if (random(4) == 0) CHECK(kit.store->flush().ok());
        break;
      case 7:
        if (random(20) == 0) CHECK(kit.store->compact().ok());
        break;
      default: {
        const auto expected = model.find(number);
        const std::optional<std::string> value = found(*kit.store, key);
        CHECK(value.has_value() == (expected != model.end()));
        if (value && expected != model.end()) CHECK(*value == expected->second);
      }
    }
  }
  CHECK(kit.store->stats().entries == model.size());
  CHECK(kit.store->verify()->is_clean());
}
