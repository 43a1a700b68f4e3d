// The runs that metrics.db remembers, for a report.
#include <algorithm>
#include <map>

#include "cli/report/gather_report.h"
#include "stats/run_metrics.h"

namespace lmemo::cli {

constexpr uint64_t kMostRuns = 200;

Status gather_runs(const std::filesystem::path& store, ReportData& report) {
  const std::filesystem::path file = store / "metrics.db";
  LMEMO_ASSIGN(std::vector<RunRecord> runs, read_runs(file, {.limit = kMostRuns}));
  std::reverse(runs.begin(), runs.end());

  std::map<std::string, double> pace;  // Seconds a token takes, by tokenizer.
  std::map<std::string, uint64_t> reasons;
  for (const RunRecord& run : runs) {
    if (!pace.contains(run.tokenizer)) pace[run.tokenizer] = seconds_per_token(file, run.tokenizer);
    const uint64_t found_tokens = run.total_tokens - std::min(run.tokenized_tokens, run.total_tokens);
    report.runs.push_back({run.run_id, run.face, run.source, run.started_at_ns, run.cache_hits,
                           run.cache_misses, run.total_tokenize_seconds,
                           static_cast<double>(found_tokens) * pace[run.tokenizer]});
    auto face = std::find_if(report.faces.begin(), report.faces.end(),
                             [&](const ReportFace& known) { return known.name == run.face; });
    if (face == report.faces.end()) face = report.faces.insert(face, {run.face});
    face->hits += run.cache_hits;
    face->misses += run.cache_misses;
    face->saved_seconds += report.runs.back().saved_seconds;
    for (const auto& [reason, count] : run.miss_reasons) reasons[reason] += count;
  }
  for (const auto& [reason, count] : reasons)
    if (count) report.miss_reasons.push_back({reason, count});
  std::sort(report.miss_reasons.begin(), report.miss_reasons.end(),
            [](const auto& a, const auto& b) { return a.count > b.count; });
  return {};
}

}  // namespace lmemo::cli
