#include <unistd.h>

#include <algorithm>

#include "measures.h"
#include "peers.h"

namespace lmemo::bench {
namespace {

// Seconds of every peer in every round.
std::vector<std::vector<double>> run_rounds(const std::vector<Peer*>& peers, const Workload& workload,
                                            int rounds) {
  std::vector<std::vector<double>> samples(peers.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < peers.size(); ++i) {
      const size_t p = (i + static_cast<size_t>(round)) % peers.size();  // Nobody always goes first.
      peers[p]->create();
      ::sync();  // What others left to write is not this one's to wait for.
      const double start = now_seconds();
      peers[p]->put(workload, 0, workload.count());
      samples[p].push_back(now_seconds() - start);
      peers[p]->remove();
    }
  return samples;
}

std::string rate_of(const Peer& peer, const Workload& workload, const std::vector<double>& samples) {
  return peer.name() + " " +
         number_text(static_cast<double>(workload.value_bytes()) / median(samples) / 1e6, 1) + " MB/s";
}

}  // namespace

void measure_puts(const Context& context, const Workload& workload, std::optional<double> bar) {
  LmemoPeer lmemo(context.scratch / "put-lmemo", CheckPolicy::first_find);
  LmemoPeer one_by_one(context.scratch / "put-lmemo-one", CheckPolicy::first_find, true);
  LmdbPeer lmdb(context.scratch / "put-lmdb"),
      mapped(context.scratch / "put-lmdb-map", LmdbPeer::Writes::by_map);
  const std::vector<Peer*> peers = {&lmemo, &lmdb, &mapped, &one_by_one};
  const auto samples = run_rounds(peers, workload, context.rounds);
  const auto against = [&](const std::string& measure, size_t p, std::optional<double> least) {
    context.report.add(
        {measure, workload.name(),
         rate_of(lmemo, workload, samples[0]) + "; " + rate_of(*peers[p], workload, samples[p]),
         median(ratios(samples[p], samples[0])), "x", least});
  };
  against("durable bulk put, against LMDB", 1, bar);
  against("durable bulk put, against LMDB with MDB_WRITEMAP", 2, bar);
  against("durable bulk put, put_many against put one by one", 3, {});
}

void measure_puts_of_files(const Context& context, const Workload& workload) {
  LmemoPeer lmemo(context.scratch / "put-lmemo", CheckPolicy::first_find);
  FilesPeer files(context.scratch / "put-files");
  const auto samples = run_rounds({&lmemo, &files}, workload, std::min(context.rounds, 5));
  context.report.add({"durable bulk put, against synced files", workload.name(),
                      rate_of(lmemo, workload, samples[0]) + "; " + rate_of(files, workload, samples[1]),
                      median(ratios(samples[1], samples[0])), "x", 3});
}

}  // namespace lmemo::bench
