#include "lmemo/sections.h"

#include "base/clock.h"
#include "faces/sections/section_sync.h"
#include "faces/tokenizer_canary.h"
#include "stats/run_metrics.h"

namespace lmemo {
namespace {

void count(SectionRun::State& run) {
  SyncStats& stats = run.stats;
  for (uint32_t s = 0; s < run.sources.size(); ++s) {
    const SourceState& source = run.sources[s];
    const WalkCounts& counts = source.listing.counts();
    stats.skipped_too_large += counts.too_large;
    stats.skipped_over_limit += counts.over_limit;
    stats.skipped_links += counts.symlinks;
    stats.source_bytes += source.listing.total_bytes();
    for (uint32_t i = 0; i < source.files.size(); ++i) {
      const FileState& file = source.files[i];
      switch (file.outcome) {
        case Outcome::pending: continue;
        case Outcome::failed: ++stats.failed; continue;
        case Outcome::binary: ++stats.skipped_binary; continue;
        case Outcome::not_utf8: ++stats.skipped_not_utf8; continue;
        case Outcome::hit: ++stats.cache_hits; break;
        case Outcome::miss:
          ++stats.cache_misses;
          ++stats.misses_by_reason[static_cast<size_t>(file.reason)];
          break;
      }
      run.rows.push_back({s, i});
      ++stats.total_sections;
      stats.total_tokens += run.cut(file.entry.number);
      stats.cut_sections += run.cut(file.entry.number) < file.entry.number;
    }
  }
}

struct TokenSums {
  uint64_t hits = 0, misses = 0;
};
TokenSums token_sums(const SectionRun::State& run) {
  TokenSums sums;
  for (const SourceState& source : run.sources)
    for (const FileState& file : source.files)
      (file.outcome == Outcome::hit ? sums.hits : sums.misses) +=
          file.outcome == Outcome::hit || file.outcome == Outcome::miss ? file.entry.number : 0;
  return sums;
}

std::string source_names(std::span<const SectionSource> sources, const SectionRun::State& run) {
  std::string names;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(run.sources[i].source.path, error);
    names += (names.empty() ? "" : " ") + (error ? run.sources[i].source.path : path).string();
  }
  return names;
}

}  // namespace

SectionCache::SectionCache(std::shared_ptr<Store> store, std::filesystem::path directory,
                           SectionRecipe recipe)
    : store_(std::move(store)), directory_(std::move(directory)), recipe_(std::move(recipe)) {}

Result<SectionRun> SectionCache::sync(std::span<const SectionSource> sources, const SyncOptions& options,
                                      const Watch& watch) const {
  auto run = std::make_shared<SectionRun::State>();
  run->store = store_;
  run->recipe = recipe_;
  run->options = options;
  std::error_code not_there;
  run->options.own_directory = std::filesystem::weakly_canonical(options.own_directory, not_there);
  run->stats.started_ns = system_clock().now_ns();
  run->stats.run_id = new_run_id(run->stats.started_ns);
  const std::filesystem::path directory = options.use_cache ? directory_ : std::filesystem::path();
  if (!directory.empty()) LMEMO_TRY(check_canary(directory, *recipe_.tokenizer, recipe_.tokenizer_identity));
  if (options.use_cache && options.max_bytes > 0) store_->limit_kind(kSectionsKind, options.max_bytes);
  Status status;
  for (const SectionSource& source : sources) run->sources.push_back({source, {}, {}});
  for (SourceState& source : run->sources)
    if (status = SourceSync(*run, source, directory, watch).run(); !status.ok()) break;
  if (!status.ok() && status.error().code != ErrorCode::interrupted) return status.error();
  count(*run);
  const TokenSums sums = token_sums(*run);
  SyncStats& stats = run->stats;
  if (options.use_cache) {
    const StoreStats store = store_->stats();
    if (const auto kind = store.kinds.find(kSectionsKind); kind != store.kinds.end())
      stats.cache_bytes_after = kind->second.stored_bytes;
  }
  const std::filesystem::path metrics = directory / "metrics.db";
  const std::string tokenizer = recipe_.tokenizer_identity.hex();
  double rate = sums.misses > 0 ? stats.total_tokenize_seconds / static_cast<double>(sums.misses) : 0;
  if (!directory.empty() && sums.misses < sums.hits)
    if (const double earlier = seconds_per_token(metrics, tokenizer); earlier > 0) rate = earlier;
  stats.saved_seconds = options.use_cache ? rate * static_cast<double>(sums.hits) : 0;
  stats.wall_seconds = static_cast<double>(system_clock().now_ns() - stats.started_ns) / 1e9;
  if (!directory.empty()) {
    RunRecord record;
    record.run_id = stats.run_id;
    record.started_at_ns = stats.started_ns;
    record.source = source_names(sources, *run);
    record.tokenizer = tokenizer;
    record.total_sections = stats.total_sections;
    record.cache_hits = stats.cache_hits;
    record.cache_misses = stats.cache_misses;
    record.total_tokenize_seconds = stats.total_tokenize_seconds;
    record.wall_seconds = stats.wall_seconds;
    record.cache_bytes_after = stats.cache_bytes_after;
    record.total_tokens = stats.total_tokens;
    record.tokenized_tokens = sums.misses;
    for (size_t i = 0; i < kMissReasons; ++i)
      if (stats.misses_by_reason[i] > 0)
        record.miss_reasons[std::string(name_of(static_cast<MissReason>(i)))] = stats.misses_by_reason[i];
    if (const Status recorded = record_run(metrics, record); !recorded.ok()) {
      run->notices.push_back(recorded.error().message);
      if (options.on_notice) options.on_notice(recorded.error().message);
    }
  }
  if (!status.ok()) return status.error();
  return SectionRun(run);
}

}  // namespace lmemo
