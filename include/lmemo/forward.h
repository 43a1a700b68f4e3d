// The forward face: results of scoring calls, each computed once.
//
//   LMEMO_ASSIGN(const Key key, forward_key({.op = "dist", .view = {{"view_id", "base"}}, .prompt = text, .top_k = 256}));
//   LMEMO_ASSIGN(const TraceReport report, analyse_trace("trace.jsonl"));
//
// The cache in memory holds Python objects and lives in python/src/forward_*; docs/forward.md is the page for users.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lmemo/key.h"
#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo {

inline constexpr const char* kForwardKind = "forward";

struct ForwardRequest {
  std::string op;
  // Whose answer it is: view_id, and for a view that carries its model also model, revision, adapter, dtype, weights, …
  std::vector<Field> view;
  FieldValue prompt;  // The whole of it.
  FieldValue top_k;
  bool uses_float16 = false;  // Arrays were rounded to half precision: another identity.
};

// Everything that changes the result is in the key. Refuses a view that names a field of the call.
Result<Key> forward_key(ForwardRequest request);

// ------------------------------------------------------------------------------------------------------ traces

struct TraceCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t failures = 0;     // Computations that raised; neither hit nor miss.
  uint64_t waited = 0;       // Of the hits: waited for another's forward pass.
  double spent_seconds = 0;  // Inside the calls.
  // What the hits would have taken: for each the last miss of the same call, else the mean miss of its op and view, else of its op.
  double saved_seconds = 0;

  uint64_t lookups() const { return hits + misses; }
  double hit_rate() const {
    return lookups() == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(lookups());
  }
};

// What a cache of so many entries, empty at first, least recently used out, would have done with the same lookups.
struct CachePoint {
  uint64_t entries = 0;
  uint64_t hits = 0;
  double hit_rate = 0;
};

struct SlowCall {
  uint64_t line = 0;  // In the file, from 1.
  double wall_ms = 0;
  bool is_hit = false;
  std::string op, view_id, prompt_hash, top_k;
  std::optional<std::string> probe;
};

struct TraceReport {
  uint64_t lines = 0;      // Empty ones are not counted.
  uint64_t malformed = 0;  // Not lines of a trace; left out.
  uint64_t first_malformed_line = 0;
  std::string first_complaint;
  double first_time_seconds = 0;
  double last_time_seconds = 0;
  TraceCounts total;
  std::map<std::string, TraceCounts> by_probe, by_view, by_op;  // No probe: "".
  uint64_t distinct_calls = 0;
  std::vector<CachePoint> curve;  // 1, 2, 4, … entries, and enough for everything.
  std::vector<SlowCall> slowest;  // Slowest first.
};

// From the trace alone. Lines that are none are counted, not fatal.
Result<TraceReport> analyse_trace(const std::filesystem::path& path, size_t slowest = 10,
                                  const Watch& watch = {});

}  // namespace lmemo
