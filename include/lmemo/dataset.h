// A tokenised train/eval data set in Arrow form, built once, used only if it really matches.
//
//   DatasetOptions options;
//   options.tokenizer = "models/qwen";            // A model's directory or a tokenizer.json.
//   options.train_files = {"train.jsonl"};
//   options.eval_split = 0.1;
//   options.output_directory = "cache/tokens";
//   LMEMO_ASSIGN(const DatasetOutcome outcome, ensure_dataset(options, [&] { return StoreForRows{store.get()}; }));
//   outcome.was_built, outcome.directory / "tokenized_dataset" …   // For datasets.load_from_disk.
//
// The identity of a set: the tokenizer's identity, the SHA-256 of the input files in their order, and every parameter that
// changes a row or its place. Not: paths, times, workers, machines. docs/dataset.md has the layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo {

class Store;
class Tokenizer;

enum class RowPadding { none, longest, max_length };
enum class RowOverflow { truncate, drop, split, error };
enum class RowLoss { all, completion, assistant };

// A chat that somebody else rendered (transformers, in Python).
struct RenderedChat {
  std::string text = {};
  // Where the assistant speaks, in bytes of `text`: what is learned with RowLoss::assistant.
  std::vector<std::pair<uint64_t, uint64_t>> learned = {};
  // Instead of text and learned: ids, and for each whether it is learned.
  bool has_ids = false;
  std::vector<uint32_t> ids = {};
  std::vector<bool> learned_ids = {};
  std::string problem = {};  // Not empty: the template refused this chat.
};
// One for each chat, which is an object with "messages" and perhaps "tools". Called from several threads, one at a time.
using RenderChats = std::function<Result<std::vector<RenderedChat>>(std::span<const std::string> chats)>;
// For this tokenizer's directory (or file) and this template. `wants_learned`: with RowLoss::assistant.
using MakeChatRenderer = std::function<Result<RenderChats>(
    const std::filesystem::path& tokenizer, const std::string& template_text, bool wants_learned)>;
using LoadTokenizer =
    std::function<Result<std::shared_ptr<const Tokenizer>>(const std::filesystem::path& path)>;
// Brings the tokenizer of a model that has this name on HuggingFace's hub, and tells where it is.
using FetchModel = std::function<Result<std::filesystem::path>(const std::string& name)>;

struct DatasetOptions {
  std::filesystem::path tokenizer = {};
  std::string model_name = {};  // For metadata.json; empty: as `tokenizer`.
  std::vector<std::filesystem::path> train_files = {};
  std::vector<std::filesystem::path> eval_files = {};
  std::filesystem::path output_directory = {};

  double eval_split = 0;  // The share of rows that goes to eval; 0: none. Not together with eval_files.
  int64_t seed = 42;
  uint64_t max_length = 512;
  RowPadding padding = RowPadding::none;
  RowOverflow overflow = RowOverflow::truncate;
  RowLoss loss = RowLoss::all;

  // "none", "chatml", "tokenizer" or a file with a Jinja template. Empty: "tokenizer" for messages, else "none".
  std::string chat_template = {};
  // One of: text_field; messages_field; prompt_field and completion_field. All empty: text_field "text".
  std::string text_field = {};
  std::string messages_field = {};
  std::string prompt_field = {};
  std::string completion_field = {};

  // The end of a text and of a completion; with a chat template, that says where turns end. Empty: as the tokenizer says.
  bool append_eos = true;
  std::string eos_token = {};
  std::string pad_token = {};  // Empty: as the tokenizer says, else its end-of-text token.

  bool is_strict = false;  // Any bad line fails the build.
  unsigned workers = 0;    // 0: one per core.
  bool rehash = false;     // Hash files even if size, times and inode say that they did not change.
  bool force = false;      // Build even if what is there matches.

  MakeChatRenderer make_renderer = {};  // Without it, templates other than chatml and none are refused.
  LoadTokenizer load_tokenizer = {};    // Empty: Tokenizer::load.
  // Which engine of others load_tokenizer falls back to, with its version. Asked only for tokenizers that it runs.
  std::function<std::string()> foreign_engine = {};
};

// What stands in the way of using a set, in words: {"max_length", "512", "1024"}.
struct DatasetDifference {
  std::string field;
  std::string built;  // With what the set was built; empty: nothing.
  std::string asked;
  std::string describe() const;
};

struct DatasetCheck {
  std::vector<DatasetDifference> differences;
  bool is_valid() const { return differences.empty(); }
};

struct DatasetCounts {
  uint64_t lines = 0;            // Not blank.
  uint64_t rows_tokenised = 0;   // Computed by this build …
  uint64_t rows_from_store = 0;  // … and found.
  uint64_t tokens_tokenised = 0;
  double tokenise_seconds = 0;  // Of all workers together.
  uint64_t train_rows = 0;
  uint64_t eval_rows = 0;
  uint64_t train_tokens = 0;  // Without padding.
  uint64_t eval_tokens = 0;
  uint64_t learned_tokens = 0;  // Of both.
  uint64_t padding_tokens = 0;
  uint64_t truncated_rows = 0;
  uint64_t truncated_tokens = 0;
  uint64_t dropped_rows = 0;                                    // Longer than max_length.
  uint64_t split_rows = 0;                                      // Rows that became several.
  uint64_t bad_lines = 0;                                       // All of `problems`.
  std::vector<std::pair<std::string, uint64_t>> problems = {};  // {"broken JSON", 3}
  std::vector<std::string> first_problems = {};                 // "train.jsonl:17: broken JSON: …"
};

struct DatasetOutcome {
  bool was_built = false;
  std::filesystem::path directory;             // output_directory.
  std::vector<DatasetDifference> differences;  // Why it was built.
  DatasetCounts counts;                        // Of the build; only the rows and tokens if none was needed.
  double wall_seconds = 0;
};

// Called with a line for people: "waiting for process 4711, which builds this set".
using DatasetNote = std::function<void(const std::string&)>;

// Looks only. A set that is not there, is damaged or was written by another version is a difference, not an error.
Result<DatasetCheck> check_dataset(const DatasetOptions& options);

// Builds if check_dataset says so. If somebody else builds, waits for that and looks again. The old set stays whole and
// in its place until the new one is, whatever happens. `open_store` is asked only then; without one, or if it gives none,
// no row is remembered.
struct StoreForRows {
  Store* store = nullptr;
  // Where the build is written down for `lmemo metrics`; empty: nowhere.
  std::filesystem::path directory = {};
};
using OpenStoreForRows = std::function<StoreForRows()>;
Result<DatasetOutcome> ensure_dataset(const DatasetOptions& options, const OpenStoreForRows& open_store,
                                      const Watch& watch = {}, const DatasetNote& note = {});

// The directory of the files that belong together, which the next build leaves alone: open what is in there, and two
// processes cannot get halves of two sets.
Result<std::filesystem::path> resolve_dataset(const std::filesystem::path& directory);

// metadata.json as it is.
Result<std::string> read_dataset_metadata(const std::filesystem::path& directory);

struct DatasetParts {
  std::vector<std::filesystem::path> ours;     // What clear_dataset removes.
  std::vector<std::filesystem::path> foreign;  // What it leaves.
  uint64_t byte_count = 0;
};
Result<DatasetParts> dataset_parts(const std::filesystem::path& directory);
// busy while somebody builds.
Status clear_dataset(const std::filesystem::path& directory);

// A training config: model_name, train_file, eval_file, max_length, use_cached_tokens, cached_tokens_dir, … (docs/dataset.md).
struct TrainingConfig {
  DatasetOptions options;
  bool use_cached_tokens = true;
  std::vector<std::string> warnings;  // Names that have no effect and are one slip away from one that has.
};
// Relative paths are those of `working_directory`, or, if there is no such file, of the config's own.
Result<TrainingConfig> read_training_config(const std::filesystem::path& file,
                                            const std::filesystem::path& working_directory,
                                            const FetchModel& fetch = {});

// The same from a text; `file` is for messages and for paths beside it.
Result<TrainingConfig> parse_training_config(std::string_view json, const std::filesystem::path& file,
                                             const std::filesystem::path& working_directory,
                                             const FetchModel& fetch = {});

// The directory or tokenizer.json that a name means: a path, a model in the cache of HuggingFace's hub, or what is fetched from there.
Result<std::filesystem::path> find_model(const std::string& name,
                                         const std::filesystem::path& working_directory,
                                         const FetchModel& fetch = {});

std::optional<RowPadding> row_padding_named(std::string_view name);
std::optional<RowOverflow> row_overflow_named(std::string_view name);
std::optional<RowLoss> row_loss_named(std::string_view name);
std::string_view name_of(RowPadding padding);
std::string_view name_of(RowOverflow overflow);
std::string_view name_of(RowLoss loss);

}  // namespace lmemo
