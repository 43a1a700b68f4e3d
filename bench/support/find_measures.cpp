#include <algorithm>
#include <functional>
#include <map>

#include "measures.h"
#include "peers.h"

namespace lmemo::bench {
namespace {

constexpr size_t kMinFindsPerRound = 200'000;

// One way of asking one peer. Its samples are CPU seconds per find, one per round: everything is in the page cache, so
// nobody waits, and a busy machine disturbs less.
struct Contestant {
  std::string name;
  Peer* peer;
  const std::vector<Digest>* digests;
  std::function<void()> prepare = [] {};
  size_t max_finds = SIZE_MAX;
  uint64_t expected_bytes = 0;
  std::vector<double> samples = {};
};

void run_once(Contestant& contestant, bool counts) {
  contestant.prepare();
  const size_t finds = contestant.digests->size();
  const size_t passes = contestant.max_finds <= finds ? 1 : std::max<size_t>(1, kMinFindsPerRound / finds);
  const double start = thread_cpu_seconds();
  uint64_t bytes = 0;
  for (size_t pass = 0; pass < passes; ++pass) bytes += contestant.peer->find_all(*contestant.digests);
  const double seconds = thread_cpu_seconds() - start;
  if (bytes != contestant.expected_bytes * passes) fail(contestant.name + " did not find what was stored");
  if (counts) contestant.samples.push_back(seconds / static_cast<double>(finds * passes));
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
  const auto renew = [&](bool renews) { return [&lmdb, renews] { lmdb.set_renews(renews); }; };

  Contestant hit{"lmemo", &lmemo, &present, [] {}, SIZE_MAX, bytes};
  Contestant miss{"lmemo miss", &lmemo, &absent};
  Contestant checked{"lmemo, checksum at every find", &checking, &present, [] {}, SIZE_MAX, bytes};
  Contestant lmdb_hit{"LMDB", &lmdb, &present, renew(false), SIZE_MAX, bytes};
  Contestant lmdb_renewed{"LMDB with a renewed transaction", &lmdb, &present, renew(true), SIZE_MAX, bytes};
  Contestant lmdb_miss{"LMDB miss", &lmdb, &absent, renew(false)};
  Contestant file_hit{"one file per entry", &files, &present, [] {}, 0, bytes};
  Contestant file_miss{"one file per entry miss", &files, &absent, [] {}, 0};

  // Those who share a store stand together.
  std::vector<std::vector<Contestant*>> groups = {{&hit, &miss}, {&lmdb_hit, &lmdb_renewed, &lmdb_miss}};
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
  report.add({"find, against LMDB", workload.name(), beside({&hit, &lmdb_hit}), ratio(lmdb_hit), "x", 5});
  report.add({"find, against LMDB that renews", workload.name(), beside({&hit, &lmdb_renewed}), ratio(lmdb_renewed), "x"});
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
