// What the disk store promises beyond the contract that it shares with the memory store.
#include "store/disk_store.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "codec/checksum.h"
#include "support/store_support.h"
#include "support/temp_directory.h"

using namespace lmemo;
using namespace lmemo::test;
namespace fs = std::filesystem;

namespace {

class TestClock : public Clock {
 public:
  int64_t now_ns() const override { return now; }
  int64_t now = 1'700'000'000'000'000'000;
};

std::unique_ptr<Store> opened(const fs::path& path, StoreOptions options = {},
                              const StoreEnvironment& environment = {}) {
  Result<std::unique_ptr<Store>> store = open_disk_store(path, std::move(options), environment);
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().describe()));
  return std::move(*store);
}

uint64_t disk_use(const fs::path& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

size_t files_in(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator{}));
}

}  // namespace

TEST_CASE("what was flushed is there after reopening, and so is what was only put") {
  const TempDirectory directory;
  {
    auto store = opened(directory / "deep/er/store");
    CHECK(store->put(key_of("tokens", 1), bytes_of("flushed")).ok());
    CHECK(store->flush().ok());
    CHECK(store->put(key_of("tokens", 2), bytes_of("closed")).ok());
  }
  auto store = opened(directory / "deep/er/store");
  CHECK(found(*store, key_of("tokens", 1)) == "flushed");
  CHECK(found(*store, key_of("tokens", 2)) == "closed");
  CHECK(files_in(directory / "deep/er/store/writing") == 0);
}

TEST_CASE("an empty path is refused, and the working directory stays as it is") {
  const Result<std::unique_ptr<Store>> opened = open_store("");
  REQUIRE(!opened.ok());
  CHECK(opened.error().code == ErrorCode::invalid_argument);
  CHECK(!std::filesystem::exists("segments"));
  CHECK(!std::filesystem::exists("writing"));
}

TEST_CASE("a long-running reader sees what another store published") {
  const TempDirectory directory;
  auto writer = opened(directory / "store");
  StoreOptions options;
  options.refresh_seconds = 0;
  auto reader = opened(directory / "store", options);
  for (int i = 0; i < 50; ++i) {
    CHECK_FALSE(reader->find(key_of("tokens", i)));
    CHECK(writer->put(key_of("tokens", i), bytes_of("x")).ok());
    CHECK(writer->flush().ok());
    CHECK(reader->find(key_of("tokens", i)));
    if (i % 10 == 9) {
      CHECK(writer->compact().ok());
      for (int j = 0; j <= i; ++j) CHECK(reader->find(key_of("tokens", j)));
    }
  }
}

TEST_CASE("a read-only store finds everything and writes nothing") {
  const TempDirectory directory;
  {
    auto store = opened(directory / "store");
    CHECK(store->put(key_of("tokens", 1), bytes_of("x")).ok());
  }
  const uint64_t before = disk_use(directory / "store");
  StoreOptions options;
  options.read_only = true;
  {
    auto store = opened(directory / "store", options);
    CHECK(found(*store, key_of("tokens", 1)) == "x");
    CHECK_FALSE(store->put(key_of("tokens", 2), bytes_of("y")).ok());
    CHECK_FALSE(store->erase(key_of("tokens", 1)).ok());
    CHECK_FALSE(store->compact().ok());
    CHECK(store->verify()->is_clean());
  }
  CHECK(disk_use(directory / "store") == before);
  CHECK_FALSE(open_store(directory / "nowhere", options).ok());
  CHECK_FALSE(fs::exists(directory / "nowhere"));
}

TEST_CASE("often flushed batches are merged, so the number of files stays small") {
  const TempDirectory directory;
  auto store = opened(directory / "store");
  for (int i = 0; i < 600; ++i) {
    CHECK(store->put(key_of("tokens", i), bytes_of(value_of(200))).ok());
    CHECK(store->flush().ok());
  }
  CHECK(files_in(directory / "store/segments") < 60);
  for (int i = 0; i < 600; ++i) CHECK(found(*store, key_of("tokens", i)) == value_of(200));
  CHECK(store->verify()->is_clean());
  auto again = opened(directory / "store");
  CHECK(again->stats().entries == 600);
}

TEST_CASE("compact gives back the space of what was erased or overwritten, erasures included") {
  const TempDirectory directory;
  auto store = opened(directory / "store");
  for (int i = 0; i < 2000; ++i) CHECK(store->put(key_of("tokens", i), bytes_of(value_of(2000))).ok());
  CHECK(store->flush().ok());
  for (int i = 0; i < 2000; i += 2) CHECK(*store->erase(key_of("tokens", i)));
  for (int i = 1; i < 2000; i += 4) CHECK(store->put(key_of("tokens", i), bytes_of(value_of(1000))).ok());
  const Result<RemovalReport> report = store->compact();
  REQUIRE(report.ok());
  const StoreStats stats = store->stats();
  CHECK(stats.entries == 1000);
  CHECK(disk_use(directory / "store") <= stats.live_bytes * 105 / 100);
  const auto check = [](Store& checked) {
    for (int i = 0; i < 2000; ++i) {
      const auto value = found(checked, key_of("tokens", i));
      if (i % 2 == 0)
        CHECK_FALSE(value);
      else
        CHECK(value == value_of(i % 4 == 1 ? 1000 : 2000));
    }
  };
  check(*store);
  check(*opened(directory / "store"));
}

TEST_CASE("an erased entry does not come back when its newer copy is evicted") {
  const TempDirectory directory;
  const Key key = key_of("tokens", 1);
  TestClock clock;
  {
    auto store = opened(directory / "store", {}, {.clock = &clock});
    CHECK(store->put(key, bytes_of("wrong")).ok());
    CHECK(store->put(key_of("tokens", 2), bytes_of(value_of(100'000))).ok());
    CHECK(store->flush().ok());
    clock.now += 1'000'000'000;
    CHECK(*store->erase(key));
    CHECK(store->flush().ok());
    CHECK(store->put(key, bytes_of("right")).ok());
    CHECK(store->put(key_of("tokens", 3), bytes_of(value_of(100'000))).ok());
    CHECK(store->flush().ok());
  }
  {
    auto store = opened(directory / "store", {}, {.clock = &clock});
    CHECK(found(*store, key_of("tokens", 2)));
    CHECK(found(*store, key_of("tokens", 3)));
    CHECK(store->evict(0).ok());  // Only what this run did not touch may go: the key.
    CHECK_FALSE(store->find(key));
  }
  auto store = opened(directory / "store", {}, {.clock = &clock});
  CHECK_FALSE(store->find(key));
  CHECK(store->find(key_of("tokens", 2)));
}

TEST_CASE("the limit holds while ten times as much is put, and what this run put stays") {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes = 4 << 20;
  int notices = 0;
  options.on_notice = [&](const Notice&) { ++notices; };
  const uint64_t batch = options.max_bytes / 16;
  for (int run = 0; run < 5; ++run) {
    auto store = opened(directory / "store", options);
    uint64_t largest = 0;
    for (int i = 0; i < 400; ++i) {
      CHECK(store->put(key_of("tokens", run * 1000 + i), bytes_of(value_of(5000))).ok());
      if (i % 10 == 0) largest = std::max(largest, disk_use(directory / "store"));
    }
    CHECK(largest <= options.max_bytes + batch);
    for (int i = 0; i < 400; ++i) CHECK(store->find(key_of("tokens", run * 1000 + i)));
  }
  CHECK(notices == 0);
  // Least recently used first: of the runs before the last one, the youngest are left.
  auto store = opened(directory / "store", options);
  CHECK_FALSE(store->find(key_of("tokens", 0)));
  CHECK(store->find(key_of("tokens", 4399)));
}

TEST_CASE("a run larger than the limit goes on, tells it once, and keeps what fits for the next run") {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes = 4 << 20;
  std::vector<Notice> notices;
  options.on_notice = [&](const Notice& notice) { notices.push_back(notice); };
  for (int run = 0; run < 2; ++run) {
    notices.clear();
    auto store = opened(directory / "store", options);
    int hits = 0;
    for (int i = 0; i < 2000; ++i) {
      const Key key = key_of("tokens", i);
      if (store->find(key))
        ++hits;
      else [[maybe_unused]]
        const Status lost = store->put(key, bytes_of(value_of(5000)));
    }
    CHECK(notices.size() == 1);
    CHECK(disk_use(directory / "store") <= options.max_bytes);
    // Nine tenths of what would fit, at least; a plain LRU would have none of it left.
    if (run == 1) CHECK(hits * 5200 > 0.9 * static_cast<double>(options.max_bytes));
  }
}

TEST_CASE("a kind keeps to its own limit") {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes_by_kind["forward"] = 1 << 20;
  for (int run = 0; run < 4; ++run) {
    auto store = opened(directory / "store", options);
    for (int i = 0; i < 100; ++i) {
      CHECK(store->put(key_of("forward", run * 100 + i), bytes_of(value_of(5000))).ok());
      CHECK(store->put(key_of("tokens", run * 100 + i), bytes_of(value_of(5000))).ok());
    }
  }
  const StoreStats stats = opened(directory / "store", options)->stats();
  CHECK(stats.kinds.at("forward").stored_bytes <= options.max_bytes_by_kind["forward"]);
  CHECK(stats.kinds.at("forward").entries >= 100);
  CHECK(stats.kinds.at("tokens").entries == 400);
}

TEST_CASE("a run larger than the limit of a kind stays within it and keeps what fits") {
  const TempDirectory directory;
  constexpr uint64_t kLimit = 2 << 20;
  for (const bool is_set_later : {false, true}) {
    StoreOptions options;
    if (!is_set_later) options.max_bytes_by_kind["tokens"] = kLimit;
    int notices = 0;
    options.on_notice = [&](const Notice&) { ++notices; };
    for (int run = 0; run < 3; ++run) {
      notices = 0;
      auto store = opened(directory / (is_set_later ? "later" : "store"), options);
      CHECK(store->put(key_of("forward", run), bytes_of(value_of(5000))).ok());
      // What was found before the limit was set counts for it as well.
      if (is_set_later && run > 0) CHECK(store->touch(key_of("tokens", 0)));
      if (is_set_later) store->limit_kind("tokens", kLimit);
      int hits = 0;
      uint64_t most = 0;
      for (int i = 0; i < 1500; ++i) {
        const Key key = key_of("tokens", i);
        if (store->find(key))
          ++hits;
        else [[maybe_unused]]
          const Status lost = store->put(key, bytes_of(value_of(5000)));
        if (i % 100 == 99) most = std::max(most, store->stats().kinds.at("tokens").stored_bytes);
      }
      CHECK(most <= kLimit);
      CHECK(most > 0.9 * kLimit);
      CHECK(notices == 1);
      if (run > 0) CHECK(hits * 5200 > 0.9 * kLimit);
      CHECK(store->stats().kinds.at("tokens").max_bytes == kLimit);
      CHECK(store->stats().kinds.at("forward").entries == static_cast<uint64_t>(run) + 1);
      if (run == 2) {
        store->limit_kind("tokens", 0);
        CHECK(store->put(key_of("tokens", 5000), bytes_of(value_of(5000))).ok());
      }
    }
  }
}

TEST_CASE("what is found is pruned later than what is not") {
  const TempDirectory directory;
  TestClock clock;
  const StoreEnvironment environment{.clock = &clock};
  constexpr int64_t kHour = 3'600'000'000'000;
  {
    auto store = opened(directory / "store", {}, environment);
    for (int i = 0; i < 10; ++i) CHECK(store->put(key_of("tokens", i), bytes_of("x")).ok());
  }
  clock.now += 48 * kHour;
  { CHECK(opened(directory / "store", {}, environment)->find(key_of("tokens", 3))); }
  clock.now += 12 * kHour;
  auto store = opened(directory / "store", {}, environment);
  CHECK(store->prune(24 * 3600)->entries == 9);
  CHECK(store->find(key_of("tokens", 3)));
  CHECK_FALSE(store->find(key_of("tokens", 4)));
  clock.now += 48 * kHour;
  auto later = opened(directory / "store", {}, environment);
  CHECK(later->prune(24 * 3600)->entries == 1);
}

TEST_CASE("a hit within the hour writes nothing") {
  const TempDirectory directory;
  { CHECK(opened(directory / "store")->put(key_of("tokens", 1), bytes_of("x")).ok()); }
  const size_t before = files_in(directory / "store/segments");
  { CHECK(opened(directory / "store")->find(key_of("tokens", 1))); }
  CHECK(files_in(directory / "store/segments") == before);
}

TEST_CASE("a record that is changed under an open store is not found any more, and a new put heals it") {
  for (const bool every_time : {false, true}) {
    const TempDirectory directory;
    StoreOptions options;
    options.check = every_time ? CheckPolicy::every_find : CheckPolicy::first_find;
    auto store = opened(directory / "store", options);
    const Key key = key_of("tokens", 1);
    CHECK(store->put(key, bytes_of("value")).ok());
    CHECK(store->flush().ok());
    CHECK(found(*store, key) == "value");
    const fs::path file = fs::directory_iterator(directory / "store/segments")->path();
    std::string bytes;
    {
      std::ifstream in(file, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(bytes.find("value")));
    out.put('V');
    out.close();
    // With first_find the file's time is looked at again after a while.
    for (int i = 0; i < 1000 && store->find(key); ++i) {
      CHECK_FALSE(every_time);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK_FALSE(store->find(key));
    CHECK(store->stats().damaged_records == 1);
    CHECK(store->put(key, bytes_of("healed")).ok());
    CHECK(found(*store, key) == "healed");
  }
}

TEST_CASE("a store of another version is refused by name and left alone") {
  const TempDirectory directory;
  { CHECK(opened(directory / "store")->put(key_of("tokens", 1), bytes_of("x")).ok()); }
  const std::string name = "00000000000000aa-00000000000000bb.seg";
  SegmentHeader header;
  header.version = 7;
  header.nonce = 0xbb;
  const Bytes raw = std::as_bytes(std::span(&header, 1));
  header.checksum = checksum(raw.first(raw.size() - 8));
  std::ofstream(directory / "store/segments" / name, std::ios::binary) << text_of(raw);
  std::vector<Notice> notices;
  StoreOptions options;
  options.on_notice = [&](const Notice& notice) { notices.push_back(notice); };
  auto store = opened(directory / "store", options);
  CHECK(store->find(key_of("tokens", 1)));
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].code == ErrorCode::incompatible);
  CHECK(notices[0].message.find("version 7") != std::string::npos);
  CHECK(store->repair().ok());
  CHECK(fs::exists(directory / "store/segments" / name));
}

TEST_CASE("clocks that go back do not bring old values back") {
  const TempDirectory directory;
  TestClock clock;
  const Key key = key_of("tokens", 1);
  auto store = opened(directory / "store", {}, {.clock = &clock});
  CHECK(store->put(key, bytes_of("old")).ok());
  CHECK(store->flush().ok());
  clock.now -= 3'600'000'000'000;
  CHECK(store->put(key, bytes_of("new")).ok());
  CHECK(found(*store, key) == "new");
  CHECK(store->flush().ok());
  auto again = opened(directory / "store", {}, {.clock = &clock});
  CHECK(found(*again, key) == "new");
  CHECK(again->put(key, bytes_of("newer")).ok());
  CHECK(found(*again, key) == "newer");
}

TEST_CASE("what a clock far ahead wrote is replaced, erased and forgotten like everything else") {
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000'000;
  const TempDirectory directory;
  TestClock clock;
  const Key key = key_of("tokens", 1), erased = key_of("tokens", 2), other = key_of("tokens", 3);
  clock.now += 10 * kYear;
  {
    auto ahead = opened(directory / "store", {}, {.clock = &clock});
    for (const Key& written : {key, erased}) CHECK(ahead->put(written, bytes_of("old")).ok());
    CHECK(ahead->flush().ok());
  }
  clock.now -= 10 * kYear;
  auto store = opened(directory / "store", {}, {.clock = &clock});
  const Item twice[] = {{&key, bytes_of("new")}, {&key, bytes_of("newer")}};
  CHECK(store->put_many(twice).ok());
  CHECK(found(*store, key) == "newer");
  CHECK(*store->erase(erased.digest()));
  CHECK_FALSE(store->find(erased.digest()));
  CHECK(store->put(other, bytes_of("now")).ok());
  CHECK(store->find(other.digest())->written_ns() < clock.now + kYear);  // Nothing else is led astray.

  CHECK(store->compact().ok());
  store = opened(directory / "store", {}, {.clock = &clock});
  CHECK(found(*store, key) == "newer");
  CHECK_FALSE(store->find(erased.digest()));
  CHECK(store->put(erased, bytes_of("back")).ok());
  CHECK(found(*store, erased) == "back");
}
