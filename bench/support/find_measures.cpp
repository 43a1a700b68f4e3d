#include <algorithm>
#include <functional>
#include <map>

#include "measures.h"
#include "peers.h"

namespace lmemo::bench {
namespace {

constexpr size_t kMinFindsPerRound = 1'000'000;

// One way of asking one peer. Its samples are CPU seconds per find, one per round: everything is in the page cache, so
// nobody waits, and a busy machine disturbs less. The first pass of a round finds the processor's caches full of what the
// others left there; it is a sample of its own.
struct Contestant {
  std::string name;
  Peer* peer;
  const std::vector<Digest>* digests;
  std::function<void()> prepare = [] {};
  size_t max_finds = SIZE_MAX;
  uint64_t expected_bytes = 0;
  std::vector<double> samples = {}, first_passes = {};
};

void run_once(Contestant& contestant, bool counts) {
  contestant.prepare();
  const size_t finds = contestant.digests->size();
  // Those that take microseconds are asked once: what the caches hold is nothing to them.
  const size_t passes = contestant.max_finds <= finds ? 0 : std::max<size_t>(1, kMinFindsPerRound / finds);
  uint64_t bytes = 0;
  const auto seconds_per_find = [&](size_t times) {
    const double start = thread_cpu_seconds();
    for (size_t pass = 0; pass < times; ++pass) bytes += contestant.peer->find_all(*contestant.digests);
    return (thread_cpu_seconds() - start) / static_cast<double>(finds * times);
  };
  const double first = seconds_per_find(1), others = passes == 0 ? first : seconds_per_find(passes);
  if (bytes != contestant.expected_bytes * (1 + passes))
    fail(contestant.name + " did not find what was stored");
  if (!counts) return;
  contestant.first_passes.push_back(first);
  contestant.samples.push_back(others);
}

std::string beside(const std::vector<Contestant*>& contestants) {
  std::string text;
  for (const Contestant* contestant : contestants)
    text += (text.empty() ? "" : "; ") + contestant->name + " " + seconds_text(median(contestant->samples));
  return text;
}

}  // namespace

void measure_finds(const Context& context, const Workload& workload, bool with_files, bool with_checks,
                   bool one_at_a_time) {
  LmemoPeer lmemo(context.scratch / "lmemo", CheckPolicy::first_find);
  LmemoPeer checking(context.scratch / "lmemo", CheckPolicy::every_find);
  LmdbPeer lmdb(context.scratch / "lmdb");
  FilesPeer files(context.scratch / "files");
  const std::vector<Digest> present = workload.shuffled(), absent = workload.absent();
  const uint64_t bytes = workload.value_bytes();
  using Reads = LmdbPeer::Reads;
  const auto reads = [&](Reads which) { return [&lmdb, which] { lmdb.set_reads(which); }; };

  Contestant hit{"lmemo", &lmemo, &present, [] {}, SIZE_MAX, bytes};
  Contestant miss{"lmemo miss", &lmemo, &absent};
  Contestant checked{"lmemo, checksum at every find", &checking, &present, [] {}, 0, bytes};
  Contestant lmdb_hit{"LMDB", &lmdb, &present, reads(Reads::of_a_snapshot), SIZE_MAX, bytes};
  Contestant lmdb_renewed{"LMDB", &lmdb, &present, reads(Reads::renewed), SIZE_MAX, bytes};
  Contestant lmdb_begun{"LMDB", &lmdb, &present, reads(Reads::begun), SIZE_MAX, bytes};
  Contestant lmdb_miss{"LMDB miss", &lmdb, &absent, reads(Reads::of_a_snapshot)};
  Contestant file_hit{"one file per entry", &files, &present, [] {}, 0, bytes};
  Contestant file_miss{"one file per entry miss", &files, &absent, [] {}, 0};

  // Those who share a store stand together.
  std::vector<std::vector<Contestant*>> groups = {{&hit, &miss},
                                                  {&lmdb_hit, &lmdb_renewed, &lmdb_begun, &lmdb_miss}};
  if (with_checks) groups[0].push_back(&checked);
  if (with_files) groups.push_back({&file_hit, &file_miss});
  const auto run_rounds = [&](std::span<const std::vector<Contestant*>> contestants) {
    for (int round = -1; round < context.rounds; ++round)  // Round -1 warms up.
      for (const auto& group : contestants)
        for (Contestant* contestant : group) run_once(*contestant, round >= 0);
  };
  const auto begin = [&](const std::vector<Contestant*>& group) {
    Peer& peer = *group.front()->peer;
    peer.fill(workload);
    peer.open();
    if (&peer == &lmemo && with_checks) checking.open();
  };
  const auto end = [&](const std::vector<Contestant*>& group) {
    checking.close();
    group.front()->peer->remove();
  };
  if (one_at_a_time) {
    for (const auto& group : groups) begin(group), run_rounds({&group, 1}), end(group);
  } else {
    for (const auto& group : groups) begin(group);
    run_rounds(groups);
    for (const auto& group : groups) end(group);
  }

  const auto ratio = [&](const Contestant& slow) { return median(ratios(slow.samples, hit.samples)); };
  Report& report = context.report;
  report.add({"find, against LMDB: one snapshot for all finds", workload.name(), beside({&hit, &lmdb_hit}),
              ratio(lmdb_hit), "x", 5});
  report.add({"find, against LMDB: transaction renewed for every find", workload.name(),
              beside({&hit, &lmdb_renewed}), ratio(lmdb_renewed), "x", 5});
  report.add({"find, against LMDB: transaction begun for every find", workload.name(),
              beside({&hit, &lmdb_begun}), ratio(lmdb_begun), "x"});
  report.add({"the first pass after others filled the caches, against LMDB: one snapshot", workload.name(),
              "lmemo " + seconds_text(median(hit.first_passes)) + "; LMDB " +
                  seconds_text(median(lmdb_hit.first_passes)),
              median(ratios(lmdb_hit.first_passes, hit.first_passes)), "x"});
  if (with_files)
    report.add({"find, against files", workload.name(), beside({&hit, &file_hit}), ratio(file_hit), "x", 30});
  report.add({"miss, against hit", workload.name(), beside({&miss, &hit, &lmdb_miss}),
              median(ratios(hit.samples, miss.samples)), "x", 1});
  if (with_files)
    report.add({"miss, against files", workload.name(), beside({&miss, &file_miss}),
                median(ratios(file_miss.samples, miss.samples)), "x"});
  if (with_checks) {
    const double bytes_per_find = static_cast<double>(bytes) / static_cast<double>(workload.count());
    report.add({"find with the checksum verified", workload.name(), beside({&checked}),
                bytes_per_find / median(checked.samples) / 1e9, "GB/s", 4});
  }
}

}  // namespace lmemo::bench
