// lmemo dataset: tokenised train/eval sets that are built once, and used only if they match.
#include <cstdlib>

#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/dataset_options.h"
#include "cli/confirmation.h"
#include "cli/text_table.h"
#include "cli/tokenizer_argument.h"
#include "lmemo/dataset.h"

namespace lmemo::cli {
namespace {

std::string percent(uint64_t part, uint64_t whole) {
  return format_fixed(whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) +
         " %";
}

// The store, or none: a set is built without one, only slower the next time.
std::unique_ptr<Store> store_or_none(CommandContext& context) {
  StoreOptions options = context.settings.store_options();
  options.on_notice = [&console = context.console](const Notice& notice) {
    console.warn(std::string(name_of(notice.code)) + ": " + notice.message);
  };
  auto store = open_store(context.settings.store(), std::move(options));
  if (store.ok()) return std::move(*store);
  context.console.warn("no store, so rows are not kept for the next build: " + store.error().describe());
  return nullptr;
}

// ----------------------------------------------------------------------------------------------- build and ensure

void add_differences(JsonWriter& json, const std::vector<DatasetDifference>& differences) {
  json.begin_array("differences");
  for (const DatasetDifference& difference : differences) {
    json.begin_object();
    json.member("field", difference.field);
    json.member("built", difference.built);
    json.member("asked", difference.asked);
    json.end_object();
  }
  json.end_array();
}

void outcome_json(CommandContext& context, const DatasetOutcome& outcome) {
  const DatasetCounts& counts = outcome.counts;
  JsonWriter json = begin_json(context);
  json.member("directory", outcome.directory.string());
  json.member("built", outcome.was_built);
  add_differences(json, outcome.differences);
  json.member("train_size", counts.train_rows);
  json.member("eval_size", counts.eval_rows);
  json.member("train_tokens", counts.train_tokens);
  json.member("eval_tokens", counts.eval_tokens);
  json.member("learned_tokens", counts.learned_tokens);
  json.member("padding_tokens", counts.padding_tokens);
  if (outcome.was_built) {
    json.member("lines", counts.lines);
    json.member("rows_tokenised", counts.rows_tokenised);
    json.member("rows_from_store", counts.rows_from_store);
    json.member("truncated_rows", counts.truncated_rows);
    json.member("truncated_tokens", counts.truncated_tokens);
    json.member("dropped_rows", counts.dropped_rows);
    json.member("split_rows", counts.split_rows);
    json.member("bad_lines", counts.bad_lines);
    json.begin_object("problems");
    for (const auto& [problem, lines] : counts.problems) json.member(problem, lines);
    json.end_object();
    json.begin_array("first_problems");
    for (const std::string& problem : counts.first_problems) json.value(problem);
    json.end_array();
  }
  json.member("wall_seconds", outcome.wall_seconds);
  json.end_object();
  context.console.out(json);
}

void warn_of_bad_lines(Console& console, const DatasetCounts& counts) {
  if (counts.bad_lines == 0) return;
  std::string kinds;
  for (const auto& [problem, lines] : counts.problems)
    kinds += (kinds.empty() ? "" : ", ") + format_count(lines) + " × " + problem;
  console.warn(format_count(counts.bad_lines) + " of " + format_count(counts.lines) +
               " lines became no row: " + kinds);
  for (const std::string& problem : counts.first_problems) console.hint("  " + printable(problem));
  if (counts.first_problems.size() < counts.bad_lines) console.hint("  …");
}

void outcome_words(Console& console, const DatasetOutcome& outcome) {
  const DatasetCounts& counts = outcome.counts;
  const uint64_t tokens = counts.train_tokens + counts.eval_tokens;
  console.note((outcome.was_built ? "built in " : "valid; looked for ") +
               format_seconds(outcome.wall_seconds) + ": " + format_count(counts.train_rows) +
               " train rows, " + format_count(counts.eval_rows) + " eval rows, " + format_count(tokens) +
               " tokens");
  if (counts.padding_tokens > 0)
    console.note(percent(counts.padding_tokens, tokens + counts.padding_tokens) +
                 " of the places are padding");
  if (!outcome.was_built) return;
  console.note(format_count(counts.rows_tokenised) + " rows tokenised, " +
               format_count(counts.rows_from_store) + " from the store");
  if (counts.truncated_rows > 0)
    console.note(format_count(counts.truncated_rows) + " rows cut to max_length, " +
                 format_count(counts.truncated_tokens) + " tokens left out (--overflow)");
  if (counts.dropped_rows > 0)
    console.note(format_count(counts.dropped_rows) + " rows dropped: longer than max_length");
  if (counts.split_rows > 0)
    console.note(format_count(counts.split_rows) + " rows split: longer than max_length");
  warn_of_bad_lines(console, counts);
}

Result<DatasetOutcome> ensure(CommandContext& context, DatasetOptions& options) {
  options.make_renderer = context.environment.make_chat_renderer;
  std::unique_ptr<Store> store;
  Result<DatasetOutcome> outcome = ensure_dataset(
      options,
      [&] {
        store = store_or_none(context);
        return StoreForRows{store.get(), store ? context.settings.store() : std::filesystem::path()};
      },
      context.console.watch(), [&](const std::string& line) { context.console.note(line); });
  context.console.end_progress();
  return outcome;
}

int tell(CommandContext& context, const DatasetOutcome& outcome) {
  if (context.console.is_json) {
    outcome_json(context, outcome);
    return kExitFine;
  }
  outcome_words(context.console, outcome);
  context.console.out(outcome.directory.string() + "\n");
  return kExitFine;
}

int run_build(CommandContext& context) {
  Result<DatasetOptions> options = dataset_options(context);
  if (!options.ok()) return misuse(context, options.error().message);
  if (const auto directory = context.arguments.text("output-dir"))
    options->output_directory = context.environment.working_directory / *directory;
  options->force = context.arguments.has("force");
  const Result<DatasetOutcome> outcome = ensure(context, *options);
  return outcome.ok() ? tell(context, *outcome) : fail(context, outcome.error());
}

// The set that a config wants; nullopt if it wants none.
Result<std::optional<DatasetOutcome>> ensure_config(CommandContext& context) {
  const std::string name = context.arguments.positional(0).value();
  const std::filesystem::path& here = context.environment.working_directory;
  LMEMO_ASSIGN(TrainingConfig config,
               read_training_config(here / name, here, context.environment.fetch_model));
  config.options.load_tokenizer = [&context](const std::filesystem::path& path) {
    return load_tokenizer_file(context, path);
  };
  config.options.foreign_engine = context.environment.foreign_engine;
  if (!config.use_cached_tokens) {
    context.console.note("nothing to do: use_cached_tokens is false in " + name +
                         "; the training tokenises by itself");
    return std::optional<DatasetOutcome>();
  }
  for (const std::string& warning : config.warnings) context.console.warn(warning);
  config.options.rehash = context.arguments.has("rehash");
  LMEMO_ASSIGN(DatasetOutcome outcome, ensure(context, config.options));
  return std::optional(std::move(outcome));
}

int run_ensure(CommandContext& context) {
  const auto outcome = ensure_config(context);
  if (!outcome.ok()) return fail(context, outcome.error());
  if (*outcome) return tell(context, **outcome);
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member_null("directory");
    json.member("built", false);
    json.member("reason", "use_cached_tokens is false");
    json.end_object();
    context.console.out(json);
  }
  return kExitFine;
}

int run_run(CommandContext& context) {
  const std::vector<std::string>& words = context.arguments.positionals();
  if (words.size() < 2) return misuse(context, "no command given; expected CONFIG -- COMMAND ...");
  const auto outcome = ensure_config(context);
  if (!outcome.ok()) return fail(context, outcome.error());
  std::vector<std::pair<std::string, std::string>> variables;
  if (*outcome) {
    outcome_words(context.console, **outcome);
    std::error_code ignored;
    variables.emplace_back("LMEMO_DATASET_DIR",
                           std::filesystem::absolute((*outcome)->directory, ignored).string());
  }
  if (!context.environment.execute)
    return fail(context, {ErrorCode::incompatible, "no programs can be run here"});
  return fail(context, context.environment.execute({words.begin() + 1, words.end()}, variables));
}

// ---------------------------------------------------------------------------------------------- check, show, clear

int run_check(CommandContext& context) {
  Result<DatasetOptions> options = dataset_options(context);
  if (!options.ok()) return misuse(context, options.error().message);
  options->output_directory = context.environment.working_directory / context.arguments.positional(0).value();
  const Result<DatasetCheck> check = check_dataset(*options);
  if (!check.ok()) return fail(context, check.error());
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("directory", options->output_directory.string());
    json.member("valid", check->is_valid());
    add_differences(json, check->differences);
    json.end_object();
    console.out(json);
  } else if (check->is_valid()) {
    console.out("valid\n");
  } else {
    for (const DatasetDifference& difference : check->differences)
      console.out(printable(difference.describe()) + "\n");
  }
  return check->is_valid() ? kExitFine : kExitGaps;
}

int run_show(CommandContext& context) {
  const std::filesystem::path directory =
      context.environment.working_directory / context.arguments.positional(0).value();
  const Result<std::string> metadata = read_dataset_metadata(directory);
  if (!metadata.ok()) return fail(context, metadata.error());
  if (context.console.is_quiet && !context.console.is_json) {
    context.console.out(printable(directory.string()) + "\n");
  } else if (!context.console.is_json) {
    context.console.out(*metadata);  // It is JSON for people already.
  } else {
    JsonWriter json = begin_json(context);
    json.end_object();
    const std::string& head = json.text();
    context.console.out(head.substr(0, head.find_last_of('\n')) + "," +
                        metadata->substr(metadata->find('{') + 1));
  }
  return kExitFine;
}

int run_clear(CommandContext& context) {
  const std::string name = context.arguments.positional(0).value();
  const std::filesystem::path directory = context.environment.working_directory / name;
  const Result<DatasetParts> parts = dataset_parts(directory);
  if (!parts.ok()) return fail(context, parts.error());
  Console& console = context.console;
  const bool is_dry = context.arguments.has("dry-run");
  if (!console.is_json) {
    for (const auto& part : parts->ours) console.out(printable(part.string()) + "\n");
    if (!console.is_quiet)
      console.note(format_byte_count(parts->byte_count) +
                   " in all; rows in the store stay (`lmemo clear --kind dataset_rows` removes them)");
  }
  if (!is_dry) {
    if (const std::optional<int> stop =
            ask_to_go_ahead(context, "Remove the data set in " + printable(name) + "?"))
      return *stop;
    if (const Status cleared = clear_dataset(directory); !cleared.ok()) return fail(context, cleared.error());
  }
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("directory", directory.string());
    json.member("dry_run", is_dry);
    json.member("bytes", parts->byte_count);
    json.end_object();
    console.out(json);
  } else if (!is_dry) {
    console.note("removed");
  }
  return kExitFine;
}

const PositionalSpec kDirectory = {
    .name = "DIR", .help = "the directory of a data set", .type = ValueType::directory};
const PositionalSpec kConfig = {.name = "CONFIG",
                                .help = "a training config, JSON (docs/dataset.md has its names)",
                                .type = ValueType::file};
const OptionSpec kRehash = {
    .name = "rehash", .help = "read files whole even if size, times and inode say that they did not change"};

}  // namespace

std::vector<CommandSpec> dataset_commands() {
  CommandSpec build;
  build.name = "build";
  build.summary = "tokenise JSON lines into a data set, unless it is there already";
  build.details =
      "DIR/tokenized_dataset opens with datasets.load_from_disk; DIR/metadata.json says what it was made of. "
      "Rows that an earlier "
      "build knows come from the store. The old set stays whole until the new one is in its place.\n"
      "Prints DIR.";
  build.options = dataset_option_specs();
  build.options.insert(build.options.begin() + 4, {.name = "output-dir",
                                                   .short_name = 'o',
                                                   .type = ValueType::directory,
                                                   .value_name = "DIR",
                                                   .help = "where the data set goes",
                                                   .is_required = true});
  build.options.push_back({.name = "force", .help = "build even if what is there matches"});
  build.examples = {{"lmemo dataset build -t qwen/ --train-file a.jsonl --eval-split 0.1 -o tokens",
                     "Texts, a tenth of them for eval."},
                    {"lmemo dataset build -t qwen/ --train-file c.jsonl --messages-field messages --loss "
                     "assistant -o chats",
                     "Chats, of which only the answers are learned."}};
  build.run = run_build;

  CommandSpec check;
  check.name = "check";
  check.summary = "tell whether a data set is what these flags would build, or what differs";
  check.positionals = {kDirectory};
  check.options = dataset_option_specs();
  check.examples = {{"lmemo dataset check tokens -t qwen/ --train-file a.jsonl --eval-split 0.1",
                     "valid, or a line for each difference."}};
  check.exit_meanings = {{kExitGaps, "it differs"}};
  check.needs_settings = false;
  check.run = run_check;

  CommandSpec ensure_spec;
  ensure_spec.name = "ensure";
  ensure_spec.summary = "build the data set of a training config if it is not there or does not match";
  ensure_spec.details =
      "Prints its directory. With \"use_cached_tokens\": false in the config it does nothing, and says so.";
  ensure_spec.positionals = {kConfig};
  ensure_spec.options = {kRehash};
  ensure_spec.examples = {{"lmemo dataset ensure train.json", "Well under a second when nothing changed."}};
  ensure_spec.run = run_ensure;

  CommandSpec run;
  run.name = "run";
  run.summary = "ensure the data set of a training config, then run a command with LMEMO_DATASET_DIR set";
  run.positionals = {
      kConfig,
      {.name = "COMMAND", .help = "what to run, behind --", .is_required = false, .is_repeated = true}};
  run.options = {kRehash};
  run.examples = {{"lmemo dataset run train.json -- torchrun --nproc_per_node=2 train.py",
                   "All ranks open what is ready."}};
  run.run = run_run;

  CommandSpec show;
  show.name = "show";
  show.summary = "show what a data set was made of and what is in it";
  show.positionals = {kDirectory};
  show.examples = {
      {"lmemo dataset show cache/tokens", "Tokenizer, files, parameters, rows, tokens, problems."}};
  show.needs_settings = false;
  show.run = run_show;

  CommandSpec clear;
  clear.name = "clear";
  clear.summary = "remove a data set; files of others beside it stay";
  clear.positionals = {kDirectory};
  clear.options = confirmation_options();
  clear.examples = {{"lmemo dataset clear cache/tokens --dry-run", "See what would go."}};
  clear.needs_settings = false;
  clear.run = run_clear;

  CommandSpec dataset;
  dataset.name = "dataset";
  dataset.summary = "tokenised train/eval sets, built once, used only if they match";
  dataset.subcommands = {build, check, ensure_spec, run, show, clear};
  dataset.examples = {
      {"lmemo dataset run train.json -- torchrun train.py", "Tokenise if needed, then train."}};
  return {dataset};
}

}  // namespace lmemo::cli
