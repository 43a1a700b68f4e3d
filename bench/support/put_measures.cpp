#include <unistd.h>

#include "measures.h"
#include "peers.h"

namespace lmemo::bench {

void measure_puts(const Context& context, const Workload& workload, bool with_files) {
  LmemoPeer lmemo(context.scratch / "put-lmemo", CheckPolicy::every_find);
  LmemoPeer one_by_one(context.scratch / "put-lmemo-one", CheckPolicy::every_find, true);
  LmdbPeer lmdb(context.scratch / "put-lmdb"), mapped(context.scratch / "put-lmdb-map", LmdbPeer::Writes::by_map);
  FilesPeer files(context.scratch / "put-files");
  std::vector<Peer*> peers = {&lmemo, &lmdb, &one_by_one, &mapped};
  if (with_files) peers.push_back(&files);
  std::vector<std::vector<double>> samples(peers.size());

  for (int round = 0; round < context.rounds; ++round)
    for (size_t i = 0; i < peers.size(); ++i) {
      const size_t p = (i + static_cast<size_t>(round)) % peers.size();  // Nobody always goes first.
      peers[p]->create();
      ::sync();  // What others left to write is not this one's to wait for.
      const double start = now_seconds();
      peers[p]->put(workload, 0, workload.count());
      samples[p].push_back(now_seconds() - start);
      peers[p]->remove();
    }

  const auto rate = [&](size_t p) {
    return peers[p]->name() + " " + number_text(static_cast<double>(workload.value_bytes()) / median(samples[p]) / 1e6, 0) +
           " MB/s";
  };
  const auto against = [&](const std::string& measure, size_t p, std::optional<double> bar) {
    context.report.add({measure, workload.name(), rate(0) + "; " + rate(p), median(ratios(samples[p], samples[0])), "x", bar});
  };
  against("durable bulk put, against LMDB", 1, 1.5);
  against("durable bulk put, against LMDB with MDB_WRITEMAP", 3, 1.5);
  if (with_files) against("durable bulk put, against synced files", 4, 3);
  against("durable bulk put, put_many against put one by one", 2, {});
}

}  // namespace lmemo::bench
