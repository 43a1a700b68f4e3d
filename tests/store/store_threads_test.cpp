// One Store object, many threads. Each writer owns its keys and knows what must be found; readers look at everybody's
// keys meanwhile, and others scan, count, verify, compact and evict. TSan runs this file.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "store/mixed_load.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

constexpr uint32_t kWriterThreads = 3;
constexpr uint32_t kKeys = 50;

// doctest's assertions are slow and not made for many threads: these are counted and told at the end.
struct Findings {
  std::atomic<int> wrong_value{0}, lost{0}, came_back{0}, went_back{0}, failed{0}, bad_scan{0};
  void check() const {
    CHECK(wrong_value == 0);
    CHECK(lost == 0);
    CHECK(came_back == 0);
    CHECK(went_back == 0);
    CHECK(failed == 0);
    CHECK(bad_scan == 0);
  }
};

class Crew {
 public:
  Crew(Store& store, bool may_lose) : store_(store), may_lose_(may_lose) {
    for (uint32_t thread = 0; thread < kWriterThreads; ++thread) {
      shapes_[thread].thread = thread;
      shapes_[thread].keys = kKeys;
    }
  }

  void write(uint32_t thread, uint32_t steps) {
    std::vector<uint64_t>& model = models_[thread];
    for (uint32_t index = 0; index < steps; ++index) {
      const Step step = load_step(shapes_[thread], index);
      carry_out(shapes_[thread], step, model);
      const uint32_t number = static_cast<uint32_t>(mixed(index, thread) % kKeys);
      check_own(shapes_[thread], number, model[number]);
    }
    ++finished_writers_;
  }

  // One thread only. What a reader saw of a key never gets older.
  void read(uint64_t seed) {
    Dice dice(seed);
    uint64_t seen[kWriterThreads][kKeys] = {};
    std::vector<Hit> held;  // Views stay good, whatever happens to their segments.
    while (!is_over()) {
      const uint32_t thread = static_cast<uint32_t>(dice.below(kWriterThreads));
      const uint32_t number = static_cast<uint32_t>(dice.below(kKeys));
      const Key key = load_key(shapes_[thread], number);
      const std::optional<Hit> hit = store_.find(key);
      if (!hit) continue;
      const uint64_t version = version_in(key, hit->value()).value_or(0);
      if (version == 0) ++findings.wrong_value;
      if (version < seen[thread][number]) ++findings.went_back;
      seen[thread][number] = version;
      if (held.size() < 20) held.push_back(*hit), held_keys_.push_back(key);
    }
    for (size_t i = 0; i < held.size(); ++i)
      if (!version_in(held_keys_[i], held[i].value())) ++findings.wrong_value;
  }

  void look_around() {
    while (!is_over()) {
      const Status scanned = store_.scan({"tokens", {{"model", "gpt2@a1b2"}}}, [&](const EntryInfo& entry) {
        const Result<Key> key = entry.key();
        if (!key.ok() || key->digest() != entry.digest || key->kind() != entry.kind) ++findings.bad_scan;
        return true;
      });
      if (!scanned.ok()) ++findings.failed;
      const StoreStats stats = store_.stats();
      if (stats.entries > kWriterThreads * kKeys || stats.damaged_records != 0) ++findings.bad_scan;
      const Result<VerifyReport> verified = store_.verify();
      if (!verified.ok() || !verified->damage.empty()) ++findings.bad_scan;
      if (!store_.explain(load_key(shapes_[0], 0)).ok()) ++findings.failed;
    }
  }

  void maintain(bool evicts) {
    for (uint64_t turn = 0; !is_over(); ++turn) {
      const Result<RemovalReport> done = evicts && turn % 2 ? store_.evict(300'000) : store_.compact();
      if (!done.ok()) ++findings.failed;
    }
  }

  // Everything, in the end, and again by somebody else.
  void check_all(Store& store) {
    for (uint32_t thread = 0; thread < kWriterThreads; ++thread)
      for (uint32_t number = 0; number < kKeys; ++number) {
        const Key key = load_key(shapes_[thread], number);
        const std::optional<Hit> hit = store.find(key);
        if (!hit && may_lose_) continue;
        CHECK((hit ? version_in(key, hit->value()).value_or(1) : 0) == models_[thread][number]);
      }
  }

  Findings findings;

 private:
  bool is_over() const { return finished_writers_ == kWriterThreads; }

  void carry_out(const LoadShape& shape, const Step& step, std::vector<uint64_t>& model) {
    std::vector<Key> keys;
    std::vector<std::string> values;
    std::vector<Item> items;
    for (const uint32_t number : step.numbers) {
      keys.push_back(load_key(shape, number));
      values.push_back(versioned_value(keys.back(), step.version));
    }
    for (size_t i = 0; i < keys.size(); ++i) items.push_back({&keys[i], bytes_of(values[i])});
    if (step.type == Step::Type::flush) {
      if (!store_.flush().ok()) ++findings.failed;
    } else if (step.type == Step::Type::erase) {
      const Result<bool> erased = store_.erase(keys[0]);
      if (!erased.ok()) ++findings.failed;
      uint64_t& version = model[step.numbers[0]];
      if (erased.ok() && *erased != (version != 0) && !may_lose_) ++findings.lost;
      version = 0;
    } else {
      if (!store_.put_many(items).ok()) ++findings.failed;
      for (const uint32_t number : step.numbers) model[number] = step.version;
    }
  }

  void check_own(const LoadShape& shape, uint32_t number, uint64_t expected) {
    const Key key = load_key(shape, number);
    const std::optional<Hit> hit = store_.find(key);
    if (!hit) {
      if (expected != 0 && !may_lose_) ++findings.lost;
      return;
    }
    const std::optional<uint64_t> version = version_in(key, hit->value());
    if (!version) ++findings.wrong_value;
    if (expected == 0) ++findings.came_back;
    if (version && expected != 0 && *version != expected) ++findings.went_back;
  }

  Store& store_;
  const bool may_lose_;
  LoadShape shapes_[kWriterThreads];
  std::vector<uint64_t> models_[kWriterThreads] = {std::vector<uint64_t>(kKeys), std::vector<uint64_t>(kKeys),
                                                   std::vector<uint64_t>(kKeys)};
  std::atomic<uint32_t> finished_writers_{0};
  std::vector<Key> held_keys_;  // Of the one reader.
};

void run(bool evicts, uint32_t steps) {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes = 0;
  options.segment_bytes = 64 << 10;
  options.publish_seconds = 0.05;
  options.refresh_seconds = 0.001;
  std::atomic<int> notices{0};
  options.on_notice = [&](const Notice&) { ++notices; };
  auto store = open_store(directory / "store", options);
  REQUIRE(store.ok());
  Crew crew(**store, evicts);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kWriterThreads; ++thread)
    threads.emplace_back([&, thread] { crew.write(thread, steps); });
  threads.emplace_back([&] { crew.read(1); });
  threads.emplace_back([&] { crew.look_around(); });
  threads.emplace_back([&] { crew.maintain(evicts); });
  for (std::thread& thread : threads) thread.join();

  crew.findings.check();
  CHECK(notices == 0);
  crew.check_all(**store);
  store->reset();
  auto again = open_store(directory / "store", options);
  REQUIRE(again.ok());
  crew.check_all(**again);
  const Result<VerifyReport> verified = (*again)->verify();
  REQUIRE(verified.ok());
  CHECK(verified->is_clean());
}

TEST_CASE("threads that share a store lose nothing while others compact, scan and verify") {
  run(false, static_cast<uint32_t>(scaled(1000, 100)));
}

TEST_CASE("threads that share a store never see an old or erased value again while others evict") {
  run(true, static_cast<uint32_t>(scaled(1000, 100)));
}

TEST_CASE("many threads open and close stores of one directory while others put") {
  const TempDirectory directory;
  StoreOptions options;
  options.max_bytes = 0;
  options.segment_bytes = 64 << 10;
  const int64_t turns = scaled(60, 10);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      LoadShape shape;
      shape.thread = thread;
      for (int64_t turn = 0; turn < turns; ++turn) {
        auto store = open_store(directory / "store", options);
        if (!store.ok()) {
          ++failed;
          continue;
        }
        const Key key = load_key(shape, static_cast<uint32_t>(turn));
        const std::string value = versioned_value(key, 1);
        if (!(*store)->put(key, bytes_of(value)).ok()) ++failed;
        if (turn > 0 && !(*store)->find(load_key(shape, static_cast<uint32_t>(turn - 1)))) ++failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  auto store = open_store(directory / "store", options);
  REQUIRE(store.ok());
  CHECK((*store)->stats().entries == 4 * static_cast<uint64_t>(turns));
}

}  // namespace
}  // namespace lmemo::test
