// The nth call to the file system fails, once or from then on, for every n of a small workload. No crash, no hang, no lie:
// what was acknowledged is there when the fault is over, even after a power cut.
#include <doctest/doctest.h>

#include "small_workload.h"
#include "support/faulty_file_system.h"
#include "support/forgetful_file_system.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

struct FaultyRun {
  ForgetfulFileSystem disk;
  FaultyFileSystem files{disk};
  SteadyClock clock;
  KeyHistories histories;
  SmallWorkload workload{files, clock, histories};

  FaultyRun() {
    REQUIRE(disk.make_directory("/home").ok());
    REQUIRE(disk.sync_directory("/").ok());
    files.on_failed_sync = [this](const Path& path) { disk.fail_sync(path); };
  }
};

std::string complaint_about_disk(ForgetfulFileSystem& disk, const FaultyRun& run, Survived survived) {
  for (const bool is_repaired : {false, true}) {
    Result<std::unique_ptr<Store>> store =
        open_disk_store(kWorkloadRoot, workload_options(), {&disk, &run.clock});
    if (!store.ok()) return "open: " + store.error().describe();
    if (const auto complaint = run.workload.complaint_about(**store, survived)) return *complaint;
    if (is_repaired) break;
    if (const auto repaired = (*store)->repair(); !repaired.ok())
      return "repair: " + repaired.error().describe();
    const Result<VerifyReport> verified = (*store)->verify();
    if (!verified.ok()) return "verify: " + verified.error().describe();
    if (!verified->is_clean()) return "not clean after repair";
  }
  return {};
}

uint64_t calls_of_the_workload() {
  FaultyRun run;
  run.workload.run();
  return run.files.calls();
}

void fail_every_call(Fault fault, bool once) {
  const uint64_t calls = calls_of_the_workload();
  const uint64_t runs = std::min(calls, static_cast<uint64_t>(scaled(static_cast<int64_t>(calls))));
  for (uint64_t i = 0; i < runs; ++i) {
    FaultyRun run;
    run.files.fail_from(1 + i * calls / runs, fault, once);
    run.workload.run();
    run.files.heal();
    INFO("call ", 1 + i * calls / runs, " of ", calls, ": ", run.files.first_failure());
    // How often a file is looked at depends on the time that passes: a quick run may never come to the last calls.
    REQUIRE((run.files.has_failed() || run.files.calls() < 1 + i * calls / runs));
    REQUIRE(run.workload.lies() == std::vector<std::string>{});
    for (const PowerCut& cut : PowerCut::samples(1, i)) {
      INFO("then the power is cut: ", cut.describe());
      const auto image = run.disk.after_power_cut(cut);
      REQUIRE(complaint_about_disk(*image, run, Survived::power_cut) == "");
    }
    // Without a power cut everything that a put returned for is there.
    const auto now = run.disk.after_kill();
    REQUIRE(complaint_about_disk(*now, run, Survived::kill) == "");
  }
}

TEST_CASE("a call that fails once with ENOSPC costs nothing that was acknowledged") {
  fail_every_call(Fault::no_space, true);
}
TEST_CASE("a call that fails once with EIO costs nothing that was acknowledged") {
  fail_every_call(Fault::io, true);
}
TEST_CASE("a call that fails once with EMFILE costs nothing that was acknowledged") {
  fail_every_call(Fault::descriptors, true);
}
TEST_CASE("a call that fails once with EACCES costs nothing that was acknowledged") {
  fail_every_call(Fault::rights, true);
}
TEST_CASE("a write that is cut short once costs nothing that was acknowledged") {
  fail_every_call(Fault::short_write, true);
}
TEST_CASE("a disk that is full from some call on loses nothing that was acknowledged") {
  fail_every_call(Fault::no_space, false);
}
TEST_CASE("a disk that dies at some call loses nothing that was acknowledged") {
  fail_every_call(Fault::io, false);
}
TEST_CASE("descriptors that run out at some call cost nothing that was acknowledged") {
  fail_every_call(Fault::descriptors, false);
}
TEST_CASE("rights taken away at some call cost nothing that was acknowledged") {
  fail_every_call(Fault::rights, false);
}
TEST_CASE("writes cut short from some call on cost nothing that was acknowledged") {
  fail_every_call(Fault::short_write, false);
}

}  // namespace
}  // namespace lmemo::test
