// One row per run, in metrics.db of the store's directory. Losing it loses history, never data: nothing that a cache
// serves depends on it, a damaged file is set aside, and a run that cannot be recorded is a run all the same.
//
//   record_run(store / "metrics.db", run);
//   LMEMO_ASSIGN(const std::vector<RunRecord> runs, read_runs(store / "metrics.db", {.limit = 10}));
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lmemo/result.h"

namespace lmemo {

struct RunRecord {
  std::string run_id;
  std::string face = "sections";
  int64_t started_at_ns = 0;
  std::string source;     // What was synced or built, for people.
  std::string tokenizer;  // Its identity.
  uint64_t total_sections = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  double total_tokenize_seconds = 0;
  double wall_seconds = 0;
  uint64_t cache_bytes_after = 0;
  uint64_t total_tokens = 0;
  uint64_t tokenized_tokens = 0;  // Of the misses.
  std::map<std::string, uint64_t> miss_reasons = {};
};

struct RunFilter {
  std::string face = {};
  std::string source = {};  // Exactly this one.
  std::string tokenizer = {};
  int64_t since_ns = 0;
  uint64_t limit = 0;  // The newest so many; 0: all.
};

// 26 characters that sort by time.
std::string new_run_id(int64_t now_ns);

Status record_run(const std::filesystem::path& file, const RunRecord& run);
// Newest first. No file: no runs.
Result<std::vector<RunRecord>> read_runs(const std::filesystem::path& file, const RunFilter& filter = {});
// Seconds a token took when it was tokenised in earlier runs; 0 if there were none.
double seconds_per_token(const std::filesystem::path& file, const std::string& tokenizer);

}  // namespace lmemo
