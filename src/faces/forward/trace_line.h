// Reads one line of a trace. Lines come from anybody: what is not a line of a trace is refused, never guessed at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lmemo/result.h"

namespace lmemo {

struct TraceLine {
  double time_seconds = 0;  // ts
  double wall_ms = 0;
  bool is_hit = false;
  bool has_waited = false;
  bool has_failed = false;  // It has an error.
  std::optional<std::string> probe;
  std::string op, view_id, prompt_hash;
  std::string top_k;  // As JSON.
};

// Expected: a JSON object with ts, wall_ms (numbers), op, view_id, prompt_hash (texts), hit (true or false), and top_k; probe is a text or
// null. Other members are ignored. An error says what is wrong, and where.
Result<TraceLine> read_trace_line(std::string_view line);

}  // namespace lmemo
