// A follower sees every key of its kind, from the index alone, whatever happens to the store meanwhile.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/little_endian.h"
#include "lmemo/store.h"
#include "store/fields_block.h"
#include "support/store_support.h"
#include "support/temp_directory.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

struct Listener : Follower {
  std::set<int64_t> numbers;
  int starts = 0, seen = 0;
  FollowPosition position;

  void start_over() override { numbers.clear(), ++starts; }
  void see(const Seen& entry) override {
    ++seen;
    for (const std::string_view field : entry.fields)
      if (const auto parts = parts_of_field(field); parts && parts->type == 2)
        numbers.insert(load_le<int64_t>(parts->value.data()));
  }
  bool ask(Store& store) {
    const Result<bool> told = store.follow("followed", position, *this);
    REQUIRE(told.ok());
    return *told;
  }
};

Key followed(int number) { return *Key::of("followed", {{"number", number}, {"other", "text"}}); }

std::unique_ptr<Store> opened(const TempDirectory& directory, StoreOptions options = {}) {
  options.refresh_seconds = 0;
  Result<std::unique_ptr<Store>> result = open_store(directory / "store", options);
  REQUIRE(result.ok());
  return std::move(*result);
}

}  // namespace

TEST_CASE("a follower learns of puts as they come, and of nothing when nothing came") {
  const TempDirectory directory;
  const auto on_disk = opened(directory), in_memory = make_memory_store();
  for (Store* store : {on_disk.get(), in_memory.get()}) {
    Listener listener;
    for (int number = 0; number < 40; ++number) {
      REQUIRE(store->put(followed(number), bytes_of("x")).ok());
      REQUIRE(store->put(key_of("other", number), bytes_of("y")).ok());
      if (number % 7 == 0) REQUIRE(store->flush().ok());
      if (number % 3 == 0) CHECK(listener.ask(*store));
    }
    listener.ask(*store);
    CHECK(listener.numbers.size() == 40);
    CHECK_FALSE(listener.ask(*store));
    REQUIRE(store->flush().ok());
    listener.ask(*store);
    CHECK(listener.numbers.size() == 40);
  }
}

TEST_CASE("a follower forgets what was erased, cleared and evicted") {
  const TempDirectory directory;
  const auto on_disk = opened(directory), in_memory = make_memory_store();
  for (Store* store : {on_disk.get(), in_memory.get()}) {
    Listener listener;
    for (int number = 0; number < 20; ++number)
      REQUIRE(store->put(followed(number), bytes_of(std::string(5000, 'x'))).ok());
    listener.ask(*store);
    REQUIRE(store->erase(followed(3)).ok());
    listener.ask(*store);
    CHECK(listener.numbers.size() == 19);
    CHECK_FALSE(listener.numbers.contains(3));
    REQUIRE(store->put(followed(3), bytes_of("again")).ok());
    listener.ask(*store);
    CHECK(listener.numbers.contains(3));
    // Touched by this run, all of them; they go nevertheless, the oldest first.
    REQUIRE(store->put(key_of("other", 1), bytes_of(std::string(50'000, 'z'))).ok());
    const auto report = store->evict_kind("followed", 30'000);
    REQUIRE(report.ok());
    CHECK(report->entries > 10);
    CHECK(store->contains(key_of("other", 1)));
    CHECK(store->stats().kinds["followed"].stored_bytes <= 30'000);
    listener.ask(*store);
    CHECK(listener.numbers.size() == 20 - report->entries);
    CHECK(listener.numbers.contains(3));
    REQUIRE(store->clear("followed").ok());
    listener.ask(*store);
    CHECK(listener.numbers.empty());
  }
}

TEST_CASE("a follower learns of what others published, also after refresh() without waiting") {
  const TempDirectory directory;
  const auto store = opened(directory);
  StoreOptions slow;
  slow.refresh_seconds = 1e6;
  const auto reader = *open_store(directory / "store", slow);
  REQUIRE(store->put(followed(1), bytes_of("x")).ok());
  REQUIRE(store->flush().ok());
  CHECK_FALSE(reader->contains(followed(1)));
  reader->refresh();
  CHECK(reader->contains(followed(1)));
  Listener listener;
  CHECK(listener.ask(*reader));
  CHECK(listener.numbers == std::set<int64_t>{1});
  REQUIRE(store->erase(followed(1)).ok());
  REQUIRE(store->flush().ok());
  reader->refresh();
  listener.ask(*reader);
  CHECK(listener.numbers.empty());
}

TEST_CASE("a run that is over the limit can make room among its own entries") {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes = 2 << 20;
  const auto store = opened(directory, options);
  const std::string value(100'000, 'v');
  int refused = 0;
  for (int number = 0; number < 100; ++number) {
    Status put = store->put(followed(number), bytes_of(value));
    if (!put.ok()) {
      CHECK(put.error().code == ErrorCode::no_space);
      ++refused;
      REQUIRE(store->evict_kind("followed", 500'000).ok());
      put = store->put(followed(number), bytes_of(value));
    }
    CHECK(put.ok());
    CHECK(store->stats().disk_bytes <= 2 << 20);
  }
  CHECK(refused > 3);
  CHECK(store->contains(followed(99)));
}

TEST_CASE("within a group a field's number stands for the field") {
  const TempDirectory directory;
  {
    const auto store = opened(directory);
    for (int number = 0; number < 60; ++number) {
      REQUIRE(store->put(followed(number), bytes_of("x")).ok());
      if (number % 20 == 19) REQUIRE(store->flush().ok());
    }
  }
  struct : Follower {
    std::map<std::pair<uint64_t, uint32_t>, std::string> fields;
    int seen = 0;
    void start_over() override {}
    void see(const Seen& entry) override {
      ++seen;
      REQUIRE(entry.numbers.size() == entry.fields.size());
      for (size_t i = 0; i < entry.fields.size(); ++i) {
        const auto [known, is_new] = fields.try_emplace({entry.group, entry.numbers[i]}, entry.fields[i]);
        CHECK(known->second == entry.fields[i]);
      }
    }
  } listener;
  FollowPosition position;
  REQUIRE(opened(directory)->follow("followed", position, listener).ok());
  CHECK(listener.seen == 60);
  CHECK(listener.fields.size() <= 60 + 3);  // Each number once, the other field once a segment.
}
