// Two writers, two readers and one evictor as processes of their own, on one store.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "store/mixed_load.h"
#include "support/child_process.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

// A process, and what it said so far.
class Member {
 public:
  Member(const std::string& role, const fs::path& store, uint32_t number, uint64_t max_bytes,
         uint64_t target_bytes = 0)
      : process_(LMEMO_TEST_PROGRAMS_DIR "/sharing_process",
                 {role, store.string(), std::to_string(number), std::to_string(max_bytes),
                  std::to_string(target_bytes)}) {}

  void listen() { take_in(process_.read_available()); }
  void stop() {
    if (has_stopped_) return;
    has_stopped_ = true;
    process_.end_input();
    take_in(process_.read_to_end());  // Until it has ended: it may have a lot to say.
    CHECK(process_.wait() == 0);
  }

  uint64_t flushed = 0, evicted = 0, missed = 0;
  std::map<uint64_t, uint64_t> seen;  // By writer: how many.

 private:
  void take_in(const std::string& said) {
    unread_ += said;
    std::istringstream lines(unread_.substr(0, unread_.rfind('\n') + 1));
    unread_.erase(0, unread_.rfind('\n') + 1);
    std::string word;
    while (lines >> word) {
      uint64_t writer = 0, number = 0;
      if (word == "flushed") lines >> flushed;
      if (word == "evicted") lines >> evicted;
      if (word == "saw" && lines >> writer >> number) ++seen[writer];
      if (word == "missed" && lines >> writer >> number) ++missed;
    }
  }

  ChildProcess process_;
  std::string unread_;
  bool has_stopped_ = false;
};

// What the directory takes on disk at this moment, each file once, even while it moves.
uint64_t disk_use(const fs::path& store) {
  std::vector<fs::path> names;
  for (const char* folder : {"writing", "segments"}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(store / folder, ignored)) names.push_back(entry.path());
  }
  std::set<ino_t> seen;
  uint64_t bytes = 0;
  for (const fs::path& name : names) {
    struct stat found;
    if (::lstat(name.c_str(), &found) == 0 && seen.insert(found.st_ino).second)
      bytes += static_cast<uint64_t>(found.st_blocks) * 512;
  }
  return bytes;
}

class Moment {
 public:
  explicit Moment(double seconds)
      : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)) {}
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  const std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
};

uint64_t count_present(const fs::path& path, uint32_t writer, uint64_t count) {
  StoreOptions options;
  options.read_only = true;
  auto store = open_store(path, options);
  REQUIRE(store.ok());
  LoadShape shape;
  shape.writer = writer;
  uint64_t present = 0;
  for (uint32_t number = 0; number < count; ++number) {
    const Key key = load_key(shape, number);
    const std::optional<Hit> hit = (*store)->find(key);
    if (!hit) continue;
    REQUIRE(version_in(key, hit->value()) == 1u);
    ++present;
  }
  return present;
}

void check_clean(const fs::path& path) {
  auto store = open_store(path, StoreOptions{});
  REQUIRE(store.ok());
  const Result<VerifyReport> verified = (*store)->verify();
  REQUIRE(verified.ok());
  CHECK(verified->is_clean());
  CHECK(verified->foreign.empty());
}

TEST_CASE("two writers and two readers share a store, and nothing is lost or late for ever") {
  const TempDirectory directory;
  const fs::path path = directory / "store";
  Member writers[] = {{"write", path, 0, 0}, {"write", path, 1, 0}};
  while (writers[0].flushed == 0) writers[0].listen();  // There is a store now, which readers do not make.
  Member readers[] = {{"read", path, 0, 0}, {"read", path, 1, 0}};
  for (const Moment end(2.0 * static_cast<double>(test_scale_percent()) / 100); !end.is_over();) {
    for (Member& writer : writers) writer.listen();
    for (Member& reader : readers) reader.listen();
  }
  for (Member& writer : writers) writer.stop();
  // The readers, who opened the store long ago, come to see every single entry.
  for (Member& reader : readers)
    for (const uint64_t writer : {0u, 1u})
      while (reader.seen[writer] < writers[writer].flushed) reader.listen();
  for (Member& reader : readers) reader.stop();
  for (const Member& reader : readers) CHECK(reader.missed == 0);
  for (const uint32_t writer : {0u, 1u}) {
    CHECK(writers[writer].flushed > 0);
    CHECK(count_present(path, writer, writers[writer].flushed) == writers[writer].flushed);
  }
  check_clean(path);
  const uint64_t flushed = writers[0].flushed + writers[1].flushed;
  MESSAGE(flushed, " acknowledged entries, each seen by both readers and at the end");
}

TEST_CASE("with an evictor at work the limit holds and every missing entry was evicted") {
  constexpr uint64_t kMaxBytes = 8 << 20;
  // A batch: 1/16 of the limit (or less), one value that is over it, the index, and what the file system rounds up.
  constexpr uint64_t kBatchBytes = (256 << 10) + (128 << 10) + (64 << 10);
  const TempDirectory directory;
  const fs::path path = directory / "store";
  Member writers[] = {{"write", path, 0, kMaxBytes}, {"write", path, 1, kMaxBytes}};
  while (writers[0].flushed == 0) writers[0].listen();
  Member readers[] = {{"read", path, 0, kMaxBytes}, {"read", path, 1, kMaxBytes}};
  Member evictor("evict", path, 0, kMaxBytes, 6 << 20);
  uint64_t most = 0, samples = 0;
  for (const Moment end(6.0 * static_cast<double>(test_scale_percent()) / 100); !end.is_over();) {
    most = std::max(most, disk_use(path));
    ++samples;
    for (Member* member : {&writers[0], &writers[1], &readers[0], &readers[1], &evictor}) member->listen();
  }
  for (Member* member : {&writers[0], &writers[1], &readers[0], &readers[1], &evictor}) member->stop();
  CHECK(most <= kMaxBytes + 2 * kBatchBytes);
  CHECK(disk_use(path) <= kMaxBytes);

  uint64_t flushed = 0, present = 0;
  for (const uint32_t writer : {0u, 1u}) {
    flushed += writers[writer].flushed;
    present += count_present(path, writer, writers[writer].flushed);
  }
  const uint64_t evicted = writers[0].evicted + writers[1].evicted + evictor.evicted;
  CHECK(flushed == present + evicted);
  check_clean(path);
  const uint64_t seen = readers[0].seen[0] + readers[0].seen[1] + readers[1].seen[0] + readers[1].seen[1];
  MESSAGE(flushed, " acknowledged, ", evicted, " evicted, ", present, " present; at most ", most, " of ",
          kMaxBytes, " bytes in ", samples, " samples; readers saw ", seen);
}

}  // namespace
}  // namespace lmemo::test
