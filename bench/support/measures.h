// The measurements of store_bench, one function per bar of "It must show", point 8.
#pragma once

#include <filesystem>
#include <optional>

#include "bench_tools.h"
#include "workload.h"

namespace lmemo::bench {

struct Context {
  std::filesystem::path scratch;
  int rounds = 5;
  bool is_full = false;
  Report& report;

  bool has_room(uint64_t bytes, const std::string& what) const;
};

// Finds to a checked-out pointer, hits and misses; with the checksum at every find where `with_checks`. Peers
// alternate round by round; `one_at_a_time` deletes each one's data before the next (12 GB do not fit the page cache twice).
void measure_finds(const Context& context, const Workload& workload, bool with_files, bool with_checks,
                   bool one_at_a_time);
// `bar` is the least that counts as fast enough beside LMDB.
void measure_puts(const Context& context, const Workload& workload, std::optional<double> bar);
// Apart, and with fewer entries: a file system syncs a few hundred files a second.
void measure_puts_of_files(const Context& context, const Workload& workload);
void measure_opening(const Context& context);
void measure_compaction(const Context& context, const Workload& workload);
void measure_processes(const Context& context, const Workload& workload);

}  // namespace lmemo::bench
