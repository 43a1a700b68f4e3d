#include "faces/chunks/build_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/tick_clock.h"
#include "base/units.h"
#include "faces/chunks/token_ranks.h"

namespace lmemo::chunks {
namespace {

constexpr int64_t kReportIntervalNs = 50'000'000;

uint64_t resident_bytes() {
  unsigned long long total = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string_view name_of(BuildPhase phase) {
  switch (phase) {
    case BuildPhase::tokenise: return "tokenise";
    case BuildPhase::pack: return "pack";
    case BuildPhase::compress: return "compress";
    case BuildPhase::publish: return "publish";
  }
  return "?";
}

BuildProgress::BuildProgress(const Watch& watch, const BuildTotals& totals)
    : watch_(watch), totals_(totals), start_ns_(monotonic_ns()) {}

Status BuildProgress::advance(BuildPhase phase, uint64_t source_bytes) {
  const std::lock_guard guard(mutex_);
  const auto at = static_cast<size_t>(phase);
  bytes_[at] += source_bytes;
  const int64_t now = monotonic_ns();
  if (now - reported_ns_[at] >= kReportIntervalNs || bytes_[at] == totals_.bytes) {
    reported_ns_[at] = now;
    report(phase);
  }
  if (watch_.stopped()) return Error{ErrorCode::interrupted, "interrupted; run it again to go on"};
  return {};
}

void BuildProgress::publish(const ChunkCounts& counts, uint64_t written_bytes) {
  const std::lock_guard guard(mutex_);
  rows_ += counts.rows;
  tokens_ += counts.tokens;
  written_bytes_ += written_bytes;
}

void BuildProgress::finish_chunk(uint64_t documents) {
  const std::lock_guard guard(mutex_);
  ++chunks_;
  documents_ += documents;
}

// Requires: mutex_ is held.
void BuildProgress::report(BuildPhase phase) {
  const double seconds = static_cast<double>(monotonic_ns() - start_ns_) * 1e-9;
  const uint64_t done = bytes_[static_cast<size_t>(phase)];
  // Most of the time goes into tokenising and compressing: their mean says when all is done.
  const double through = (static_cast<double>(bytes_[static_cast<size_t>(BuildPhase::tokenise)]) +
                          static_cast<double>(bytes_[static_cast<size_t>(BuildPhase::compress)])) /
                         2;
  const double rate = seconds > 0 ? through / seconds : 0;
  const double seconds_left = rate > 0 ? (static_cast<double>(totals_.bytes) - through) / rate : 0;
  const uint64_t memory = resident_bytes();
  std::vector<ProgressFigure> figures = {{"documents", static_cast<double>(documents_)},
                                         {"total_documents", static_cast<double>(totals_.documents)},
                                         {"chunks", static_cast<double>(chunks_)},
                                         {"total_chunks", static_cast<double>(totals_.chunks)},
                                         {"bytes_per_second", rate},
                                         {"seconds_left", seconds_left},
                                         {"memory_bytes", static_cast<double>(memory)},
                                         {"memory_limit_bytes", static_cast<double>(totals_.memory_limit)}};
  std::string note = format_count(documents_) + " of " + format_count(totals_.documents) + " documents, " +
                     format_count(chunks_) + "/" + format_count(totals_.chunks) + " chunks, " +
                     format_byte_count(static_cast<uint64_t>(rate)) + "/s, " + format_seconds(seconds_left) +
                     " left";
  if (rows_ > 0) {
    const double filled =
        static_cast<double>(tokens_) / (static_cast<double>(rows_) * totals_.sequence_length);
    const double per_token =
        static_cast<double>(written_bytes_) / static_cast<double>(std::max<uint64_t>(1, tokens_));
    const double ratio = bytes_for(totals_.vocab_size) / per_token;
    figures.insert(figures.end(),
                   {{"utilization", filled}, {"bytes_per_token", per_token}, {"compression_ratio", ratio}});
    note += ", " + format_fixed(100 * filled, 2) + " % filled, " + format_fixed(per_token, 2) +
            " bytes/token (" + format_fixed(ratio, 1) + " × smaller)";
  }
  note += ", memory " + format_byte_count(memory) + " of " + format_byte_count(totals_.memory_limit);
  watch_.report({name_of(phase), done, totals_.bytes, "bytes", note, figures});
}

ChunkSteps::~ChunkSteps() {
  build_.finish_chunk(documents_);
  for (const BuildPhase phase :
       {BuildPhase::tokenise, BuildPhase::pack, BuildPhase::compress, BuildPhase::publish}) [[maybe_unused]]
    const Status told = reach(phase, 1);  // Who wants to stop is heard elsewhere.
}

Status ChunkSteps::reach(BuildPhase phase, double part) {
  uint64_t& told = told_[static_cast<size_t>(phase)];
  const auto bytes = static_cast<uint64_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(source_bytes_));
  const uint64_t more = bytes > told ? bytes - told : 0;
  told += more;
  return build_.advance(phase, more);
}

}  // namespace lmemo::chunks
