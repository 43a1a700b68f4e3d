#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "measures.h"
#include "peers.h"
#include "store/format.h"

namespace lmemo::bench {

bool Context::has_room(uint64_t bytes, const std::string& what) const {
  const uint64_t available = free_disk_bytes(scratch);
  if (available >= bytes + (uint64_t{2} << 30)) return true;
  report.skip(what, "needs " + std::to_string(bytes >> 30) + " GiB of disk and 2 to spare, there are " +
                        std::to_string(available >> 30) + " free");
  return false;
}

namespace {

constexpr int kOpens = 15;

struct Opening {
  double lmemo_seconds, lmdb_seconds;
};

// From nothing to the first found entry, with the files in the page cache; CPU time, as nobody waits.
Opening time_opening(const Context& context, const Workload& workload) {
  LmemoPeer lmemo(context.scratch / "open-lmemo", CheckPolicy::every_find);
  LmdbPeer lmdb(context.scratch / "open-lmdb");
  lmemo.fill(workload);
  lmdb.fill(workload);
  const std::vector<Digest> digests = workload.shuffled();
  const auto time_one = [&](Peer& peer, size_t i) {
    const double start = thread_cpu_seconds();
    peer.open();
    if (peer.find_all({&digests[i], 1}) == 0) fail(peer.name() + " lost an entry");
    const double seconds = thread_cpu_seconds() - start;
    peer.close();
    return seconds;
  };
  std::vector<double> ours, theirs;
  for (size_t i = 0; i <= kOpens; ++i) {
    const double our = time_one(lmemo, i), their = time_one(lmdb, i);
    if (i > 0) ours.push_back(our), theirs.push_back(their);  // The first one warms up.
  }
  lmemo.remove();
  lmdb.remove();
  return {median(ours), median(theirs)};
}

void report_opening(const Context& context, const Workload& workload, const Opening& opening,
                    double at_most_ms) {
  context.report.add(
      {"open to first find",
       workload.name(),
       "lmemo " + seconds_text(opening.lmemo_seconds) + "; LMDB " + seconds_text(opening.lmdb_seconds),
       opening.lmemo_seconds * 1e3,
       "ms",
       {},
       at_most_ms});
}

void report_growth(const Context& context, const std::string& data, const Opening& small,
                   const Opening& large) {
  context.report.add({"open does not grow with the bytes",
                      data,
                      seconds_text(small.lmemo_seconds) + "; " + seconds_text(large.lmemo_seconds),
                      large.lmemo_seconds / small.lmemo_seconds,
                      "x",
                      {},
                      1.25});
}

}  // namespace

void measure_opening(const Context& context) {
  const Workload small("50,000 of 200 B", 50'000, 200, 200), large("50,000 of 4–20 KB", 50'000, 4000, 20000);
  const Opening small_opening = time_opening(context, small), large_opening = time_opening(context, large);
  report_opening(context, small, small_opening, 5);
  report_opening(context, large, large_opening, 5);
  report_growth(context, "50,000 of 200 B; of 4–20 KB", small_opening, large_opening);

  const Workload many("1,000,000 of 200 B", 1'000'000, 200, 200);
  const Opening many_opening = time_opening(context, many);
  report_opening(context, many, many_opening, 60);
  if (!context.is_full || !context.has_room(uint64_t{28} << 30, "opening 1,000,000 of 4–20 KB")) return;
  const Workload huge("1,000,000 of 4–20 KB", 1'000'000, 4000, 20000);
  const Opening huge_opening = time_opening(context, huge);
  report_opening(context, huge, huge_opening, 60);
  report_growth(context, "1,000,000 of 200 B; of 4–20 KB", many_opening, huge_opening);
}

namespace {

constexpr size_t kEntriesOfWriter = 2000;  // Put by the writer thread while the store is compacted.

struct Compaction {
  double erase_seconds = 0, compact_seconds = 0;
  uint64_t bytes_before = 0, bytes_after = 0;
  uint64_t live_bytes = 0;      // As stats() says.
  uint64_t survivor_bytes = 0;  // Records and index entries of what must be there, counted by ourselves.
  uint64_t finds = 0, puts = 0;
};

Compaction compact_half(const Context& context, const Workload& workload, bool is_online) {
  LmemoPeer lmemo(context.scratch / "compact", CheckPolicy::first_find);
  lmemo.fill(workload);
  lmemo.open();
  Store& store = lmemo.store();
  Compaction result;
  result.bytes_before = disk_use_bytes(lmemo.directory());
  const auto survives = [](size_t i) { return i % 2 == 1; };
  ::sync();

  double start = now_seconds();
  for (size_t i = 0; i < workload.count(); ++i)
    if (!survives(i)) must(store.erase(workload.key(i).digest()), "erase");
  must(store.flush(), "flush");
  result.erase_seconds = now_seconds() - start;

  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> finds{0};
  size_t puts = 0;
  std::vector<std::thread> others;
  const Workload fresh("written meanwhile", kEntriesOfWriter, 11999, 12000);
  if (is_online) {
    others.emplace_back([&] {  // Reads survivors: each must be there, all the time.
      for (size_t i = 1; !is_done; i = (i + 2 * 7919) % workload.count()) {
        if (!survives(i)) continue;
        const std::optional<Hit> hit = store.find(workload.key(i).digest());
        if (!hit || hit->value().size() != workload.value(i).size())
          fail("a survivor was not found while compacting");
        if (++finds % 256 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    others.emplace_back([&] {  // Writes about 10 MB/s.
      for (; puts < fresh.count() && !is_done; ++puts) {
        must(store.put(Key(fresh.key(puts)), fresh.value(puts)), "put");
        std::this_thread::sleep_for(std::chrono::microseconds(1100));
      }
    });
  }
  start = now_seconds();
  must(store.compact(), "compact");
  result.compact_seconds = now_seconds() - start;
  is_done = true;
  for (std::thread& other : others) other.join();
  must(store.flush(), "flush");

  const auto stored = [](const Key& key, Bytes value) {
    return record_bytes(static_cast<uint16_t>(key.encoding().size()), value.size()) + sizeof(IndexEntry);
  };
  for (size_t i = 0; i < workload.count(); ++i)
    if (survives(i)) result.survivor_bytes += stored(workload.key(i), workload.value(i));
  for (size_t i = 0; i < puts; ++i) result.survivor_bytes += stored(fresh.key(i), fresh.value(i));
  result.live_bytes = store.stats().live_bytes;
  result.bytes_after = disk_use_bytes(lmemo.directory());
  result.finds = finds;
  result.puts = puts;
  lmemo.remove();
  return result;
}

}  // namespace

void measure_compaction(const Context& context, const Workload& workload) {
  std::vector<double> over_stats, over_survivors, online, alone, with_erasing;
  Compaction last;
  for (int round = 0; round < std::min(context.rounds, 3); ++round) {
    const Compaction quiet = compact_half(context, workload, false);
    last = compact_half(context, workload, true);
    const auto rate = [](uint64_t bytes, double seconds) {
      return static_cast<double>(bytes) / seconds / 1e6;
    };
    alone.push_back(rate(quiet.bytes_before, quiet.compact_seconds));
    online.push_back(rate(last.bytes_before, last.compact_seconds));
    with_erasing.push_back(rate(last.bytes_before, last.compact_seconds + last.erase_seconds));
    const auto over = [&](uint64_t live) {
      return 100 * (static_cast<double>(last.bytes_after) / static_cast<double>(live) - 1);
    };
    over_stats.push_back(over(last.live_bytes));
    over_survivors.push_back(over(last.survivor_bytes));
  }
  const auto mb = [](uint64_t bytes) { return number_text(static_cast<double>(bytes) / 1e6, 1) + " MB"; };
  Report& report = context.report;
  report.add(
      {"half deleted and compacted: disk use over live bytes",
       workload.name(),
       mb(last.bytes_before) + " before, " + mb(last.bytes_after) + " after, live " + mb(last.live_bytes),
       median(over_stats),
       "%",
       {},
       5});
  report.add({"the same, over the survivors' records and index entries",
              workload.name(),
              mb(last.survivor_bytes),
              median(over_survivors),
              "%",
              {},
              5});
  report.add({"compaction while others read and write", workload.name(),
              std::to_string(last.finds) + " finds and " + std::to_string(last.puts) + " puts meanwhile",
              median(online), "MB/s", 500});
  report.add({"the same, with the time of the erasing", workload.name(),
              "erase() one by one, flush, compact()", median(with_erasing), "MB/s"});
  report.add({"compaction with nobody else", workload.name(), "", median(alone), "MB/s"});
}

}  // namespace lmemo::bench
