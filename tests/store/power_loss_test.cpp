// The power goes at every point of a small workload, and the disk forgets what it may forget. Promises 1 to 4 and 10:
// what flush returned for is there, what was replaced or erased stays so. Promise 6: kill -9 loses nothing that a put
// returned for.
#include <doctest/doctest.h>

#include "small_workload.h"
#include "support/forgetful_file_system.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

// Opens the disk as it is now, looks at everything, repairs it and looks again.
std::string complaint_about_image(ForgetfulFileSystem& image, const SmallWorkload& workload,
                                  const SteadyClock& clock, Survived survived) {
  for (const bool is_second_life : {false, true}) {
    Result<std::unique_ptr<Store>> store =
        open_disk_store(kWorkloadRoot, workload_options(), {&image, &clock});
    if (!store.ok()) return "open: " + store.error().describe();
    if (const auto complaint = workload.complaint_about(**store, survived)) return *complaint;
    if (is_second_life) break;
    if (const auto repaired = (*store)->repair(); !repaired.ok())
      return "repair: " + repaired.error().describe();
    const Result<VerifyReport> verified = (*store)->verify();
    if (!verified.ok()) return "verify: " + verified.error().describe();
    if (!verified->is_clean()) return "not clean after repair";
    if (const auto complaint = workload.complaint_about(**store, survived))
      return "after repair, " + *complaint;
    const Result<RemovalReport> compacted = (*store)->compact();
    if (!compacted.ok()) return "compact: " + compacted.error().describe();
  }
  return {};
}

struct Run {
  ForgetfulFileSystem files;
  SteadyClock clock;
  KeyHistories histories;
  SmallWorkload workload{files, clock, histories};

  Run() {
    REQUIRE(files.make_directory("/home").ok());
    REQUIRE(files.sync_directory("/").ok());
  }
};

TEST_CASE("what flush returned for survives a power cut at any point") {
  Run run;
  uint64_t points = 0;
  const uint64_t stride = static_cast<uint64_t>(scaled(100) < 100 ? 7 : 1);
  run.files.on_change = [&] {
    if (++points % stride != 0) return;
    for (const PowerCut& cut : PowerCut::samples(static_cast<uint64_t>(scaled(6)), points)) {
      const auto image = run.files.after_power_cut(cut);
      const std::string complaint =
          complaint_about_image(*image, run.workload, run.clock, Survived::power_cut);
      INFO("after change ", points, ": ", cut.describe());
      REQUIRE(complaint == "");
    }
  };
  run.workload.run();
  CHECK(run.workload.lies().empty());
  CHECK(points > 100);
}

TEST_CASE("what a put returned for survives kill -9 at any point") {
  Run run;
  uint64_t points = 0;
  run.files.on_change = [&] {
    ++points;
    const auto image = run.files.after_kill();
    const std::string complaint = complaint_about_image(*image, run.workload, run.clock, Survived::kill);
    INFO("after change ", points);
    REQUIRE(complaint == "");
  };
  run.workload.run();
}

// An erasure may stand in a file that was begun, and so is named, before the one with what it hides.
TEST_CASE("a clear that is killed brings nothing back that was erased or overwritten") {
  ForgetfulFileSystem files;
  SteadyClock clock;
  REQUIRE(files.make_directory("/home").ok());
  const auto open = [&](FileSystem& where) {
    return std::move(*open_disk_store(kWorkloadRoot, workload_options(), {&where, &clock}));
  };
  const auto first = open(files);
  REQUIRE(first->put(workload_key("z"), bytes_of("begins the file")).ok());
  clock.advance_seconds(1);
  {
    const auto second = open(files);
    REQUIRE(second->put(workload_key("erased"), bytes_of("1")).ok());
    REQUIRE(second->put(workload_key("replaced"), bytes_of("1")).ok());
    REQUIRE(second->flush().ok());
  }
  REQUIRE(first->erase(workload_key("erased")).ok());
  REQUIRE(first->put(workload_key("replaced"), bytes_of("2")).ok());
  REQUIRE(first->flush().ok());
  int points = 0;
  files.on_change = [&] {
    ++points;
    INFO("killed after change ", points);
    const auto image = files.after_kill();
    const auto survivor = open(*image);
    CHECK_FALSE(survivor->find(workload_key("erased")));
    if (const auto hit = survivor->find(workload_key("replaced"))) CHECK(text_of(hit->value()) == "2");
  };
  REQUIRE(first->clear().ok());
  files.on_change = nullptr;
  CHECK(points > 2);
  CHECK(first->stats().entries == 0);
  for (const Path& file : files.files()) CHECK(file.extension() != ".seg");
}

// Kill -9, then another process, then the power: what the second one flushed must not hang on names that only the
// first one would have synced (promise 1).
TEST_CASE("a store begun by a process that was killed is as durable as any other") {
  Run first;
  uint64_t points = 0;
  const uint64_t stride = static_cast<uint64_t>(scaled(100) < 100 ? 5 : 1);
  first.files.on_change = [&] {
    if (++points % stride != 0) return;
    const auto image = first.files.after_kill();
    KeyHistories histories;
    {
      Result<std::unique_ptr<Store>> store =
          open_disk_store(kWorkloadRoot, workload_options(), {image.get(), &first.clock});
      REQUIRE(store.ok());
      histories.begin("z", "of the second process");
      REQUIRE((*store)->put(workload_key("z"), bytes_of("of the second process")).ok());
      histories.done("z");
      REQUIRE((*store)->flush().ok());
      histories.flushed();
    }
    for (const PowerCut& cut : PowerCut::samples(static_cast<uint64_t>(scaled(2)), points)) {
      const auto after = image->after_power_cut(cut);
      INFO("first killed after change ", points, "; ", cut.describe());
      Result<std::unique_ptr<Store>> store =
          open_disk_store(kWorkloadRoot, workload_options(), {after.get(), &first.clock});
      REQUIRE(store.ok());
      REQUIRE(histories.complaint("z", (*store)->find(workload_key("z")), Survived::power_cut) ==
              std::nullopt);
    }
  };
  first.workload.run();
}

}  // namespace
}  // namespace lmemo::test
