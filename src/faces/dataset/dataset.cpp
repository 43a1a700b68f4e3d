// check, ensure, clear: the face itself. What it asks others to do is in the files beside it.
#include "lmemo/dataset.h"

#include <chrono>

#include "base/clock.h"
#include "base/units.h"
#include "faces/dataset/known_rows.h"
#include "faces/dataset/seen_files.h"
#include "faces/dataset/set_builder.h"
#include "faces/dataset/set_damage.h"
#include "faces/dataset/set_directory.h"
#include "faces/dataset/set_identity.h"
#include "lmemo/tokenizer.h"
#include "sources/text_file.h"
#include "stats/run_metrics.h"

namespace lmemo {
namespace {

using namespace dataset;
namespace fs = std::filesystem;

constexpr uint64_t kMaxMetadataBytes = uint64_t{64} << 20;

Error misuse(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Status check_options(const DatasetOptions& options) {
  if (options.tokenizer.empty()) return misuse("no tokenizer: give --tokenizer or --model-name");
  if (options.train_files.empty()) return misuse("no train file: give --train-file");
  if (options.output_directory.empty()) return misuse("no place for the data set: give --output-dir");
  if (!(options.eval_split >= 0 && options.eval_split < 1))
    return misuse("eval_split is " + format_fixed(options.eval_split, 2) +
                  ", expected a share from 0 up to, not including, 1");
  if (options.eval_split > 0 && !options.eval_files.empty())
    return misuse("eval_split and eval files exclude each other");
  if (options.max_length < 1 || options.max_length > uint64_t{1} << 30)
    return misuse("max_length is " + format_count(options.max_length) + ", expected 1 to 1,073,741,824");
  if (options.workers > 1024)
    return misuse("workers is " + format_count(options.workers) + ", expected at most 1,024");
  return {};
}

std::vector<InputFile> input_files(const DatasetOptions& options) {
  std::vector<InputFile> files;
  for (const fs::path& path : options.train_files) files.push_back({path, false, {}});
  for (const fs::path& path : options.eval_files) files.push_back({path, true, {}});
  return files;
}

Status load_tokenizer(SetPlan& plan) {
  if (plan.tokenizer) return {};
  const DatasetOptions& options = *plan.options;
  LMEMO_ASSIGN(plan.tokenizer, options.load_tokenizer ? options.load_tokenizer(options.tokenizer)
                                                      : Tokenizer::load(options.tokenizer));
  return {};
}

// Everything that is asked for, but for the digests of the files.
Result<SetPlan> make_plan(const DatasetOptions& options, SeenFiles& seen) {
  LMEMO_TRY(check_options(options));
  SetPlan plan;
  plan.options = &options;
  plan.files = input_files(options);
  std::optional<TokenizerFacts> facts;
  if (!options.rehash) facts = seen.find_tokenizer(options);
  if (!facts) {
    const std::vector<std::string> stamps = SeenFiles::tokenizer_stamps(options.tokenizer);
    LMEMO_TRY(load_tokenizer(plan));
    LMEMO_ASSIGN(facts, facts_of(options, *plan.tokenizer));
    seen.note_tokenizer(options, stamps, *facts);
  }
  plan.facts = std::move(*facts);
  LMEMO_ASSIGN(plan.recipe, recipe_of(options, plan.facts));
  return plan;
}

struct Comparison {
  std::vector<DatasetDifference> differences;
  DatasetCounts counts;  // Of the set that is there.
};

DatasetDifference nothing_there(const fs::path& directory, const std::string& why) {
  return {"data set", "", directory.string() + ": " + why};
}

Result<Comparison> compare(SetPlan& plan, const SetDirectory& directory, SeenFiles& seen,
                           const Watch& watch) {
  const std::optional<fs::path> set = directory.current();
  if (!set) return Comparison{{nothing_there(directory.path(), "there is none yet")}, {}};
  const Result<std::string> metadata = read_text_file(*set / kMetadataFile, kMaxMetadataBytes);
  if (!metadata.ok()) return Comparison{{nothing_there(directory.path(), metadata.error().message)}, {}};
  const Result<SetFacts> facts = read_set_facts(*metadata);
  if (!facts.ok())
    return Comparison{{{"lmemo format", facts.error().message, std::to_string(kDatasetFormat)}}, {}};

  for (InputFile& file : plan.files) {
    LMEMO_ASSIGN(file.identity, identity_of_file(file.path, seen, plan.options->rehash, watch));
  }
  Comparison comparison;
  comparison.counts = facts->counts;
  comparison.differences = differences_between(
      facts->identity, identity_fields(*plan.options, plan.facts, plan.recipe, plan.files));
  LMEMO_ASSIGN(std::vector<DatasetDifference> damage,
               damage_of(*set, *facts, seen, plan.options->rehash, watch));
  for (DatasetDifference& difference : damage) comparison.differences.push_back(std::move(difference));
  if (plan.options->is_strict && facts->counts.bad_lines > 0)
    comparison.differences.push_back({"bad lines", std::to_string(facts->counts.bad_lines), "none (strict)"});
  return comparison;
}

// Keeps the memory of files, if there is a place for it already: looking must not leave anything behind.
void save_seen(const SeenFiles& seen, const SetDirectory& directory) {
  std::error_code error;
  if (seen.has_changed() && fs::is_directory(directory.private_path(), error))
    seen.save(directory.seen_path());
}

Result<DatasetCounts> build_and_publish(SetPlan& plan, const SetDirectory& directory, Store* store,
                                        SeenFiles& seen, const Watch& watch) {
  LMEMO_TRY(load_tokenizer(plan));
  LMEMO_ASSIGN(const fs::path set, directory.begin_set());
  Result<DatasetCounts> counts = build_set(plan, set, store, seen, watch);
  Status published = counts.ok() ? directory.publish(set) : counts.error();
  if (!published.ok()) {
    std::error_code ignored;
    fs::remove_all(set, ignored);
    return published.error();
  }
  return counts;
}

// For `lmemo metrics`. A build that cannot be written down is a build all the same.
void record_build(const SetPlan& plan, const DatasetCounts& counts, int64_t started_ns,
                  const StoreForRows& rows, const DatasetNote& note) {
  if (rows.directory.empty()) return;
  RunRecord run;
  run.run_id = new_run_id(started_ns);
  run.face = "dataset";
  run.started_at_ns = started_ns;
  run.source = plan.options->output_directory.string();
  run.tokenizer = plan.facts.identity.hex();
  run.total_sections = counts.rows_tokenised + counts.rows_from_store;
  run.cache_hits = counts.rows_from_store;
  run.cache_misses = counts.rows_tokenised;
  run.total_tokenize_seconds = counts.tokenise_seconds;
  run.wall_seconds = static_cast<double>(system_clock().now_ns() - started_ns) / 1e9;
  run.total_tokens = counts.train_tokens + counts.eval_tokens;
  run.tokenized_tokens = counts.tokens_tokenised;
  if (counts.rows_tokenised > 0) run.miss_reasons["new"] = counts.rows_tokenised;
  if (rows.store != nullptr) {
    const StoreStats stats = rows.store->stats();
    if (const auto kind = stats.kinds.find(kRowsKind); kind != stats.kinds.end())
      run.cache_bytes_after = kind->second.stored_bytes;
  }
  if (const Status recorded = record_run(rows.directory / "metrics.db", run); !recorded.ok() && note)
    note("this build was not recorded: " + recorded.error().message);
}

}  // namespace

Result<DatasetCheck> check_dataset(const DatasetOptions& options) {
  const SetDirectory directory(options.output_directory);
  SeenFiles seen = SeenFiles::load(directory.seen_path());
  LMEMO_ASSIGN(SetPlan plan, make_plan(options, seen));
  LMEMO_ASSIGN(Comparison comparison, compare(plan, directory, seen, {}));
  save_seen(seen, directory);
  return DatasetCheck{std::move(comparison.differences)};
}

Result<DatasetOutcome> ensure_dataset(const DatasetOptions& options, const OpenStoreForRows& open_store,
                                      const Watch& watch, const DatasetNote& note) {
  const int64_t started_ns = system_clock().now_ns();
  const auto start = std::chrono::steady_clock::now();
  const SetDirectory directory(options.output_directory);
  SeenFiles seen = SeenFiles::load(directory.seen_path());
  LMEMO_ASSIGN(SetPlan plan, make_plan(options, seen));
  LMEMO_ASSIGN(Comparison comparison, compare(plan, directory, seen, watch));

  DatasetOutcome outcome;
  outcome.directory = options.output_directory;
  const bool must_build = !comparison.differences.empty() || options.force;
  if (must_build) {
    LMEMO_TRY(directory.prepare());
    LMEMO_ASSIGN(const auto lock, directory.lock(watch, note));
    // Somebody else may have built it while we waited, and hashed what we would have to.
    if (!options.force) {
      if (!seen.has_changed()) seen = SeenFiles::load(directory.seen_path());
      LMEMO_ASSIGN(comparison, compare(plan, directory, seen, watch));
    }
    if (!comparison.differences.empty() || options.force) {
      directory.remove_leftovers();
      if (note)
        for (const DatasetDifference& difference : comparison.differences)
          note("building: " + difference.describe());
      const StoreForRows rows = open_store ? open_store() : StoreForRows();
      LMEMO_ASSIGN(comparison.counts, build_and_publish(plan, directory, rows.store, seen, watch));
      record_build(plan, comparison.counts, started_ns, rows, note);
      outcome.was_built = true;
    }
    save_seen(seen, directory);  // Before those who wait go on.
  } else {
    save_seen(seen, directory);
  }
  outcome.differences = std::move(comparison.differences);
  outcome.counts = std::move(comparison.counts);
  outcome.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Result<fs::path> resolve_dataset(const fs::path& directory) {
  const std::optional<fs::path> set = SetDirectory(directory).current();
  if (!set)
    return Error{ErrorCode::io_error,
                 "no data set in " + directory.string() + "; `lmemo dataset build` makes one"};
  return *set;
}

Result<std::string> read_dataset_metadata(const fs::path& directory) {
  LMEMO_ASSIGN(const fs::path set, resolve_dataset(directory));
  LMEMO_ASSIGN(std::string metadata, read_text_file(set / kMetadataFile, kMaxMetadataBytes));
  LMEMO_TRY(read_set_facts(metadata));
  return metadata;
}

Result<DatasetParts> dataset_parts(const fs::path& directory) {
  LMEMO_TRY(resolve_dataset(directory));
  DatasetParts parts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours =
        name == kDatasetFolder || name == kMetadataFile || name == kTokenizerFolder || name == ".lmemo";
    (is_ours ? parts.ours : parts.foreign).push_back(entry.path());
  }
  for (const fs::path& part : parts.ours) {
    if (fs::is_symlink(fs::symlink_status(part, error))) continue;
    if (fs::is_regular_file(part, error)) parts.byte_count += fs::file_size(part, error);
    for (const auto& entry : fs::recursive_directory_iterator(part, error))
      if (entry.is_regular_file(error) && !entry.is_symlink(error))
        parts.byte_count += entry.file_size(error);
  }
  return parts;
}

Status clear_dataset(const fs::path& directory) {
  LMEMO_ASSIGN(const DatasetParts parts, dataset_parts(directory));
  const SetDirectory set(directory);
  std::error_code error;
  std::unique_ptr<FileLock> lock;
  if (fs::is_directory(set.private_path(), error)) {
    auto taken = set.try_lock();
    if (!taken.ok() && taken.error().code == ErrorCode::busy)
      return Error{ErrorCode::busy, "somebody builds " + directory.string() + " just now"};
    if (!taken.ok()) return taken.error();
    lock = std::move(*taken);
  }
  // The link first: from then on there is no set, and no half of one.
  fs::remove(set.private_path() / "current", error);
  for (const fs::path& part : parts.ours) {
    fs::remove_all(part, error);
    if (error) return errno_error(error.value(), "remove", part);
  }
  if (parts.foreign.empty()) fs::remove(directory, error);
  return {};
}

std::optional<RowPadding> row_padding_named(std::string_view name) {
  for (const RowPadding padding : {RowPadding::none, RowPadding::longest, RowPadding::max_length})
    if (name_of(padding) == name) return padding;
  return std::nullopt;
}
std::optional<RowOverflow> row_overflow_named(std::string_view name) {
  for (const RowOverflow overflow :
       {RowOverflow::truncate, RowOverflow::drop, RowOverflow::split, RowOverflow::error})
    if (name_of(overflow) == name) return overflow;
  return std::nullopt;
}
std::optional<RowLoss> row_loss_named(std::string_view name) {
  for (const RowLoss loss : {RowLoss::all, RowLoss::completion, RowLoss::assistant})
    if (name_of(loss) == name) return loss;
  return std::nullopt;
}
std::string_view name_of(RowPadding padding) {
  static constexpr std::string_view kNames[] = {"none", "longest", "max_length"};
  return kNames[static_cast<int>(padding)];
}
std::string_view name_of(RowOverflow overflow) {
  static constexpr std::string_view kNames[] = {"truncate", "drop", "split", "error"};
  return kNames[static_cast<int>(overflow)];
}
std::string_view name_of(RowLoss loss) {
  static constexpr std::string_view kNames[] = {"all", "completion", "assistant"};
  return kNames[static_cast<int>(loss)];
}

}  // namespace lmemo
