// Writers with several threads are killed at random moments, together with whoever compacts, evicts, prunes or repairs
// at that time. Each of their steps is known from a seed, each says when it returned, and so the test knows for every
// key what must be found afterwards: exactly the last step that returned, or the one that was under way.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "store/mixed_load.h"
#include "support/child_process.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kWriters = 2;
constexpr uint32_t kThreads = 3;
constexpr uint64_t kAbsent = 0;

struct Totals {
  uint64_t kills = 0;             // Processes that died of SIGKILL.
  uint64_t flushed_entries = 0;   // Checked: put and acknowledged by flush.
  uint64_t returned_entries = 0;  // Checked: put returned, no flush asked for.
  uint64_t erased_entries = 0;    // Checked: erased and still so.
};

Totals& totals() {
  static Totals instance;
  return instance;
}

enum class Loss { none, by_eviction };

// What one thread of a writer has done to its own keys, as far as it told us.
class ThreadModel {
 public:
  explicit ThreadModel(LoadShape shape) : shape_(shape), settled_(shape.keys, kAbsent) {}

  LoadShape& shape() { return shape_; }
  void begin_round() { returned_.clear(); }
  void note(const StepReturned& returned) {
    REQUIRE(returned.index == returned_.size());
    returned_.push_back(returned.did_erase != 0);
  }

  // Every state that a key may be in. `since_flush`: from the last flush on, as for a reader that does not take over
  // what dead writers left; else only the last state that a step returned for, and the step under way.
  std::vector<std::set<uint64_t>> allowed(bool since_flush) const {
    std::vector<std::set<uint64_t>> states(shape_.keys);
    for (uint32_t number = 0; number < shape_.keys; ++number) states[number] = {settled_[number]};
    std::vector<uint64_t> last = settled_;
    for (uint32_t index = 0; index <= returned_.size(); ++index) {
      const bool has_returned = index < returned_.size();
      const Step step = load_step(shape_, index);
      if (step.type == Step::Type::flush && has_returned)
        for (uint32_t number = 0; number < shape_.keys; ++number) states[number] = {last[number]};
      for (const uint32_t number : step.numbers) {
        uint64_t now = step.version;
        if (step.type == Step::Type::erase) now = has_returned && !returned_[index] ? last[number] : kAbsent;
        if (has_returned && !since_flush) states[number].clear();
        states[number].insert(now);
        if (has_returned) last[number] = now;
      }
    }
    return states;
  }

  std::vector<uint64_t>& settled() { return settled_; }
  // The number of keys that the last flush that returned made durable.
  std::set<uint32_t> flushed_keys() const {
    std::set<uint32_t> done, since;
    for (uint32_t index = 0; index < returned_.size(); ++index) {
      const Step step = load_step(shape_, index);
      if (step.type == Step::Type::flush) done = since;
      for (const uint32_t number : step.numbers) since.insert(number);
    }
    return done;
  }

 private:
  LoadShape shape_;
  std::vector<uint64_t> settled_;  // As found after the last kill.
  std::vector<bool> returned_;     // By step: whether it erased something.
};

class KilledStore {
 public:
  KilledStore(uint32_t keys, Loss loss) : loss_(loss) {
    for (uint32_t writer = 0; writer < kWriters; ++writer)
      for (uint32_t thread = 0; thread < kThreads; ++thread) {
        LoadShape shape;
        shape.writer = writer;
        shape.thread = thread;
        shape.keys = keys;
        models_.emplace_back(shape);
      }
  }

  // Starts the writers and, if asked, somebody who maintains; kills them all, one after the other.
  void run_and_kill(uint64_t round, Dice& dice, const std::vector<std::string>& maintenance) {
    std::vector<std::unique_ptr<ChildProcess>> writers;
    std::vector<std::string> said(kWriters);
    for (ThreadModel& model : models_) model.shape().round = round, model.begin_round();
    for (uint32_t writer = 0; writer < kWriters; ++writer)
      writers.push_back(std::make_unique<ChildProcess>(
          LMEMO_TEST_PROGRAMS_DIR "/mixed_writer",
          std::vector<std::string>{path().string(), std::to_string(writer), std::to_string(kThreads),
                                   std::to_string(models_[0].shape().keys), std::to_string(round)}));
    std::unique_ptr<ChildProcess> maintainer;
    if (!maintenance.empty()) {
      std::vector<std::string> words{path().string()};
      words.insert(words.end(), maintenance.begin(), maintenance.end());
      maintainer = std::make_unique<ChildProcess>(LMEMO_TEST_PROGRAMS_DIR "/maintainer", words);
    }
    // Whoever dies first, the others go on for a while, and meet what the dead one left.
    const bool is_maintainer_first = dice.one_in(2);
    listen(writers, said, 1 + dice.below(300));
    if (maintainer && is_maintainer_first) kill(*maintainer);
    const size_t first = dice.below(kWriters);
    kill(*writers[first]);
    if (dice.one_in(2)) listen(writers, said, 1 + dice.below(100));
    kill(*writers[1 - first]);
    if (maintainer && !is_maintainer_first) kill(*maintainer);
    for (uint32_t writer = 0; writer < kWriters; ++writer) {
      said[writer] += writers[writer]->read_to_end();
      REQUIRE(said[writer].size() % sizeof(StepReturned) == 0);
      for (size_t at = 0; at < said[writer].size(); at += sizeof(StepReturned)) {
        StepReturned returned;
        std::memcpy(&returned, said[writer].data() + at, sizeof returned);
        models_.at(writer * kThreads + returned.thread).note(returned);
      }
    }
  }

  void check() {
    StoreOptions options;
    options.max_bytes = 0;
    options.segment_bytes = 64 << 10;
    options.on_notice = [](const Notice& notice) { FAIL_CHECK("notice: ", notice.message); };
    {
      // Promise 3: what flush returned for is published. Promise 8: looking writes nothing.
      StoreOptions reading = options;
      reading.read_only = true;
      const auto before = names_in(path());
      if (auto store = open_store(path(), reading); store.ok()) {
        check_entries(**store, true);
        check_verified(**store, false);
      } else {
        for (ThreadModel& model : models_)  // Killed before there was a store: then nobody was told of one.
          for (const auto& states : model.allowed(false)) REQUIRE(states.contains(kAbsent));
      }
      CHECK(names_in(path()) == before);
    }
    auto store = open_store(path(), options);
    REQUIRE(store.ok());
    check_entries(**store, false);  // Promise 6.
    const Result<RepairReport> repaired = (*store)->repair();
    REQUIRE(repaired.ok());
    CHECK(repaired->lost_records == 0);
    check_verified(**store, true);
    check_names();
    check_entries(**store, false);
    store->reset();
    check_names();
    settle(options);
  }

  fs::path path() const { return directory_ / "store"; }

 private:
  static void kill(ChildProcess& process) {
    // Whoever ended by itself met an error, and said which.
    process.signal(SIGKILL);
    REQUIRE(process.wait() == 128 + SIGKILL);
    ++totals().kills;
  }

  // Reads until so many steps more have returned: a kill then comes at work, on any machine.
  static void listen(std::vector<std::unique_ptr<ChildProcess>>& writers, std::vector<std::string>& said,
                     uint64_t steps) {
    size_t heard = 0;
    while (heard < steps * sizeof(StepReturned)) {
      std::vector<pollfd> waiting;
      for (const auto& writer : writers) waiting.push_back({writer->output(), POLLIN, 0});
      ::poll(waiting.data(), waiting.size(), 1000);
      bool is_over = true;
      for (size_t i = 0; i < writers.size(); ++i) {
        if (waiting[i].revents & POLLIN) {
          const std::string piece = writers[i]->read_available();
          heard += piece.size();
          said[i] += piece;
        }
        is_over &= (waiting[i].revents & (POLLHUP | POLLIN)) == POLLHUP;
      }
      if (is_over) return;
    }
  }

  static std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    if (!fs::exists(directory)) return names;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
      names.insert(fs::relative(entry.path(), directory).string());
    return names;
  }

  // Nothing else than docs/format.md lists, and nothing left of the dead.
  void check_names() {
    for (const std::string& name : names_in(path())) {
      const bool is_known = name == "segments" || name == "writing" || name == "maintenance.lock";
      const bool is_segment =
          name.starts_with("segments/") && name.ends_with(".seg") && name.size() == 9 + 33 + 4;
      CHECK_MESSAGE((is_known || is_segment), name);
    }
  }

  void check_verified(Store& store, bool is_repaired) {
    const Result<VerifyReport> report = store.verify();
    REQUIRE(report.ok());
    for (const Damage& damage : report->damage)
      FAIL_CHECK(damage.file, " at ", damage.offset, ": ", damage.what);
    CHECK(report->foreign.empty());
    if (is_repaired) CHECK(report->is_clean());
    CHECK(store.stats().damaged_records == 0);
  }

  void check_entries(Store& store, bool since_flush) {
    uint64_t present = 0;
    for (ThreadModel& model : models_) {
      const auto allowed = model.allowed(since_flush);
      const std::set<uint32_t> flushed = model.flushed_keys();
      for (uint32_t number = 0; number < allowed.size(); ++number) {
        const Key key = load_key(model.shape(), number);
        const std::optional<Hit> hit = store.find(key);
        uint64_t version = kAbsent;
        if (hit) {
          const std::optional<uint64_t> told = version_in(key, hit->value());
          REQUIRE_MESSAGE(told, "a wrong byte in writer ", model.shape().writer, " key ", number);
          version = *told;
          ++present;
        }
        const bool is_right =
            allowed[number].contains(version) || (version == kAbsent && loss_ == Loss::by_eviction);
        INFO("round ", model.shape().round, " writer ", model.shape().writer, " thread ",
             model.shape().thread, " key ", number, " since_flush ", since_flush, " found ", version >> 32,
             ":", version & 0xffffffff, " expected ", *allowed[number].begin() >> 32, ":",
             *allowed[number].begin() & 0xffffffff);
        REQUIRE(is_right);
        if (since_flush && version != kAbsent && flushed.contains(number)) ++totals().flushed_entries;
        if (!since_flush && version != kAbsent) ++totals().returned_entries;
        if (!since_flush && version == kAbsent) ++totals().erased_entries;
      }
    }
    // And nothing that nobody put.
    uint64_t seen = 0;
    REQUIRE(store.scan({}, [&](const EntryInfo&) { return ++seen > 0; }).ok());
    CHECK(seen == present);
  }

  // What was found now is what must be found after the next kill.
  void settle(const StoreOptions& options) {
    auto store = open_store(path(), options);
    REQUIRE(store.ok());
    for (ThreadModel& model : models_)
      for (uint32_t number = 0; number < model.settled().size(); ++number) {
        const Key key = load_key(model.shape(), number);
        const std::optional<Hit> hit = (*store)->find(key);
        model.settled()[number] = hit ? version_in(key, hit->value()).value() : kAbsent;
      }
  }

  const Loss loss_;
  TempDirectory directory_;
  std::vector<ThreadModel> models_;
};

void say_totals(const std::string& what) {
  const Totals& t = totals();
  MESSAGE(what, ": ", t.kills, " kills; entries checked: ", t.flushed_entries, " flushed, ",
          t.returned_entries, " put, ", t.erased_entries, " erased or never put");
  totals() = {};
}

// A test that must be reproducible gets its seed from here.
uint64_t seed_of_this_run() {
  const char* given = std::getenv("LMEMO_TEST_SEED");
  const uint64_t seed =
      given ? std::strtoull(given, nullptr, 10)
            : static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  MESSAGE("LMEMO_TEST_SEED=", seed);
  return seed;
}

TEST_CASE("a store that outlives many killed writers keeps everything they were told is kept") {
  Dice dice(seed_of_this_run());
  KilledStore store(80, Loss::none);
  const std::vector<std::vector<std::string>> maintenance = {{}, {"compact"}, {"reopen"}, {"compact"}};
  const int64_t rounds = scaled(10, 2);
  for (int64_t round = 1; round <= rounds; ++round) {
    store.run_and_kill(static_cast<uint64_t>(round), dice, maintenance[dice.below(maintenance.size())]);
    store.check();
  }
  say_totals("one store, no eviction");
}

TEST_CASE("a fresh store survives writers that are killed at its birth") {
  Dice dice(seed_of_this_run());
  const std::vector<std::vector<std::string>> maintenance = {{}, {"compact"}, {"reopen"}};
  for (int64_t i = 0; i < scaled(8); ++i) {
    KilledStore store(20, Loss::none);
    for (uint64_t round = 1; round <= 2; ++round) {
      store.run_and_kill(round, dice, maintenance[dice.below(maintenance.size())]);
      store.check();
    }
  }
  say_totals("fresh stores");
}

TEST_CASE("eviction and pruning by a process that is killed bring back nothing old and nothing erased") {
  Dice dice(seed_of_this_run());
  KilledStore store(60, Loss::by_eviction);
  const std::vector<std::vector<std::string>> maintenance = {
      {"evict", "200000"}, {"evict", "800000"}, {"prune", "0.05"}, {"compact"}, {"reopen"}};
  const int64_t rounds = scaled(10, 2);
  for (int64_t round = 1; round <= rounds; ++round) {
    store.run_and_kill(static_cast<uint64_t>(round), dice, maintenance[dice.below(maintenance.size())]);
    store.check();
  }
  say_totals("one store, with eviction");
}

}  // namespace
}  // namespace lmemo::test
