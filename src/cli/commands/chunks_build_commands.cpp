// lmemo chunks plan, build, fill, grow, repair, estimate: what makes chunks.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/units.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/chunks_support.h"
#include "cli/confirmation.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

using chunks::ChunkState;
using chunks::Plan;
using chunks::SetPaths;

double utilization(const ChunkCounts& counts, uint32_t sequence_length) {
  const double room = static_cast<double>(counts.rows) * sequence_length;
  return room > 0 ? static_cast<double>(counts.tokens) / room : 0;
}

void tell_plan(CommandContext& context, const Path& directory, const PlannedChunks& planned,
               bool is_dry_run) {
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("directory", directory.string());
    json.member("dry_run", is_dry_run);
    json.member("total_chunks", planned.plan.entries.size());
    json.member("new_chunks", planned.new_chunks);
    json.member("documents", planned.plan.documents());
    json.member("new_documents", planned.scan.documents);
    json.member("new_bytes", planned.scan.bytes);
    json.member("duplicates", planned.scan.duplicates);
    json.member("chunk_bytes", planned.plan.chunk_bytes);
    json.end_object();
    context.console.out(json);
    return;
  }
  context.console.out(std::string(is_dry_run ? "would plan " : "planned ") +
                      format_count(planned.new_chunks) + " chunks of " +
                      format_count(planned.scan.documents) + " documents, " +
                      format_byte_count(planned.scan.bytes) + "; " +
                      format_count(planned.plan.entries.size()) + " chunks in all\n");
}

int run_plan_or_build(CommandContext& context, bool builds) {
  const auto output = chunks_option(context, "output");
  if (!output) return misuse(context, "--output is missing: the directory of the chunks");
  const Path directory = directory_argument(context, *output);
  const bool is_dry_run = context.arguments.has("dry-run");
  const auto wanted = wanted_chunks(context);
  if (!wanted.ok()) return fail(context, wanted.error());
  Result<PlannedChunks> planned = Error{ErrorCode::busy, ""};
  {
    Result<std::unique_ptr<FileLock>> lock = std::unique_ptr<FileLock>();
    if (!is_dry_run) lock = lock_plan(context, directory);
    if (!lock.ok()) return fail(context, lock.error());
    auto plan = chunks::load_plan(directory);
    if (!plan.ok()) return fail(context, plan.error());
    planned = make_or_extend_plan(context, directory, std::move(*plan), &*wanted,
                                  context.arguments.positionals(), is_dry_run);
  }
  if (!planned.ok()) return fail(context, planned.error());
  if (!builds || is_dry_run) {
    tell_plan(context, directory, *planned, is_dry_run);
    return kExitFine;
  }
  const auto numbers = asked_chunks(context, planned->plan.entries.size());
  if (!numbers.ok()) return fail(context, numbers.error());
  return build_and_tell(context, directory, planned->plan, *wanted->tokenizer, *numbers, &planned->scan);
}

int run_fill(CommandContext& context) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const auto plan = existing_plan(directory);
  if (!plan.ok()) return fail(context, plan.error());
  const auto status =
      chunks::status_of(SetPaths{directory}, *plan, {.compares_sources = false}, chunks_watch(context));
  if (!status.ok()) return fail(context, status.error());
  const auto asked = asked_chunks(context, plan->entries.size());
  if (!asked.ok()) return fail(context, asked.error());
  std::vector<uint64_t> gaps;
  for (const uint64_t number : *asked)
    if (status->states[number] == ChunkState::missing) gaps.push_back(number);
  uint64_t bytes = 0;
  for (const uint64_t number : gaps) bytes += plan->entries[number].bytes();
  uint64_t source_bytes_there = 0;
  for (const auto& [number, entry] : status->registry)
    if (status->states[number] == ChunkState::sound) source_bytes_there += plan->entries[number].bytes();
  if (!gaps.empty()) {
    std::string words = format_count(gaps.size()) + " chunks are missing (" + ranges_in_words(gaps) +
                        "), of " + format_byte_count(bytes) + " of sources";
    if (source_bytes_there > 0)
      words += "; they will take about " +
               format_byte_count(
                   static_cast<uint64_t>(static_cast<double>(status->bytes()) * static_cast<double>(bytes) /
                                         static_cast<double>(source_bytes_there)));
    context.console.note(words);
  }
  if (!status->damaged.empty())
    context.console.warn(format_count(status->damaged.size()) + " chunks are damaged; `lmemo chunks repair " +
                         directory.string() + "` builds them again");
  if (context.arguments.has("dry-run")) {
    if (context.console.is_json) {
      JsonWriter json = begin_json(context);
      json.member("dry_run", true);
      add_numbers(json, "missing", gaps);
      json.end_object();
      context.console.out(json);
    }
    return kExitFine;
  }
  const auto tokenizer = tokenizer_of_plan(context, *plan);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  return build_and_tell(context, directory, *plan, **tokenizer, gaps, nullptr);
}

int run_grow(CommandContext& context) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const bool is_dry_run = context.arguments.has("dry-run");
  std::vector<std::string> inputs(context.arguments.positionals().begin() + 1,
                                  context.arguments.positionals().end());
  Result<PlannedChunks> planned = Error{ErrorCode::busy, ""};
  {
    auto plan = existing_plan(directory);
    if (!plan.ok()) return fail(context, plan.error());
    const auto lock = lock_plan(context, directory);
    if (!lock.ok()) return fail(context, lock.error());
    plan = existing_plan(directory);  // As it is now that nobody else writes it.
    if (!plan.ok()) return fail(context, plan.error());
    if (inputs.empty()) inputs = plan->inputs;
    planned = make_or_extend_plan(context, directory, std::move(*plan), nullptr, inputs, is_dry_run);
  }
  if (!planned.ok()) return fail(context, planned.error());
  if (is_dry_run) {
    tell_plan(context, directory, *planned, true);
    return kExitFine;
  }
  const auto tokenizer = tokenizer_of_plan(context, planned->plan);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  // Old chunks stay as they are, stale ones too.
  std::vector<uint64_t> numbers;
  const auto found = chunks::list_chunks(SetPaths{directory});
  if (!found.ok()) return fail(context, found.error());
  std::vector<bool> is_there(planned->plan.entries.size(), false);
  for (const auto& chunk : *found)
    if (chunk.number < is_there.size()) is_there[chunk.number] = true;
  for (uint64_t number = 0; number < is_there.size(); ++number)
    if (!is_there[number]) numbers.push_back(number);
  return build_and_tell(context, directory, planned->plan, **tokenizer, numbers, &planned->scan);
}

// Moves a file away without losing it: somebody may want to look.
Status set_aside(const SetPaths& paths, uint64_t number) {
  FileSystem& files = real_file_system();
  LMEMO_TRY(files.make_directory(paths.aside()));
  const std::string name = SetPaths::name_of_chunk(number);
  for (int copy = 0;; ++copy) {
    const Path to = paths.aside() / (copy == 0 ? name : name + "." + std::to_string(copy));
    LMEMO_ASSIGN(const FileStatus status, files.status(to));
    if (status.type == FileType::missing) return files.rename(paths.chunk(number), to);
  }
}

int run_repair(CommandContext& context) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const SetPaths paths{directory};
  auto plan = existing_plan(directory);
  if (!plan.ok()) return fail(context, plan.error());
  const auto lock = lock_plan(context, directory);
  if (!lock.ok()) return fail(context, lock.error());
  plan = existing_plan(directory);
  if (!plan.ok()) return fail(context, plan.error());
  const auto options = build_options(context);
  if (!options.ok()) return fail(context, options.error());
  auto status = chunks::status_of(paths, *plan,
                                  {.check = chunks::Check::all, .workers = std::max(1u, options->workers)},
                                  chunks_watch(context));
  if (!status.ok()) return fail(context, status.error());
  context.console.end_progress();

  std::vector<uint64_t> bad;
  for (uint64_t number = 0; number < status->states.size(); ++number)
    if (status->states[number] == ChunkState::damaged || status->states[number] == ChunkState::stale)
      bad.push_back(number);
  for (const auto& damaged : status->damaged)
    context.console.note("chunk " + std::to_string(damaged.number) + " is damaged: " + damaged.what);
  if (context.arguments.has("dry-run")) {
    if (context.console.is_json) {
      JsonWriter json = begin_json(context);
      json.member("dry_run", true);
      add_numbers(json, "to_rebuild", bad);
      json.end_object();
      context.console.out(json);
    } else {
      context.console.out("would rebuild " + (bad.empty() ? std::string("nothing") : ranges_in_words(bad)) +
                          "\n");
    }
    return kExitFine;
  }
  const auto tokenizer = tokenizer_of_plan(context, *plan);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  if (!status->sources.revision.entries.empty() || !status->sources.revision.sources.empty())
    if (const Status revised = chunks::append_to_plan(directory, *plan, std::move(status->sources.revision));
        !revised.ok())
      return fail(context, revised.error());
  // What cannot be built again: a damaged chunk is still set aside, since nobody may read it; a stale one stays.
  std::vector<uint64_t> numbers;
  for (const uint64_t number : bad) {
    const auto& lost = status->sources.lost;
    if (std::binary_search(lost.begin(), lost.end(), number)) {
      std::string sources;
      for (const auto& range : plan->entries[number].ranges) {
        const auto& source = plan->sources.at(range.source);
        if (std::find(status->sources.gone.begin(), status->sources.gone.end(), source.path.string()) !=
            status->sources.gone.end())
          sources += (sources.empty() ? "" : "; ") + source.path.string() + ", " +
                     format_count(range.documents) + " documents from line " +
                     std::to_string(range.first_line);
      }
      context.console.warn("chunk " + std::to_string(number) +
                           " cannot be built again, its source is gone: " + sources);
      if (status->states[number] == ChunkState::stale) continue;
    } else {
      numbers.push_back(number);
    }
    if (const Status moved = set_aside(paths, number); !moved.ok()) return fail(context, moved.error());
  }
  if (const Status forgotten = chunks::update_registry(paths, {}, bad); !forgotten.ok())
    context.console.warn(forgotten.error().describe());
  return build_and_tell(context, directory, *plan, **tokenizer, numbers, nullptr);
}

int run_estimate(CommandContext& context) {
  const auto wanted = wanted_chunks(context);
  if (!wanted.ok()) return fail(context, wanted.error());
  const auto files =
      chunks::find_input_files(context.arguments.positionals(), context.environment.working_directory);
  if (!files.ok()) return fail(context, files.error());
  const auto start = std::chrono::steady_clock::now();
  const auto sample = chunks::sample_inputs(*files, wanted->plan.parameters, *wanted->tokenizer);
  if (!sample.ok()) return fail(context, sample.error());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  double bytes = 0;
  bool is_compressed = false;
  for (const auto& file : *files) {
    std::error_code ignored;
    const auto size = static_cast<double>(std::filesystem::file_size(file.path, ignored));
    const std::string extension = file.path.extension().string();
    is_compressed = is_compressed || extension == ".gz" || extension == ".zst";
    bytes += extension == ".gz" || extension == ".zst" ? 3.5 * size : size;
  }
  // The error bars are what the sampled files differ by, at 95 %; one file says nothing about the others.
  const auto& ratios = sample->bytes_per_token;
  double error = 0.5;
  if (ratios.size() >= 2) {
    double mean = 0, squares = 0;
    for (const double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
    for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
    error = 1.96 *
            std::sqrt(squares / static_cast<double>(ratios.size() - 1) / static_cast<double>(ratios.size())) /
            mean;
  } else if (static_cast<double>(sample->bytes) >= bytes * 0.99) {
    error = 0;
  } else {
    error = 0.2;
  }
  if (is_compressed) error = std::max(error, 0.5);
  const ChunkParameters& parameters = wanted->plan.parameters;
  const double tokens = bytes / sample->ratio();
  const double rows = std::ceil(tokens / parameters.sequence_length);
  const double chunk_count = std::ceil(rows / static_cast<double>(wanted->plan.chunk_sequences));
  const double per_token = parameters.compression == "none" ? 2 : parameters.compression == "lz4" ? 1.1 : 0.9;
  const double chunk_bytes =
      static_cast<double>(wanted->plan.chunk_sequences) * parameters.sequence_length * sample->ratio();
  const auto memory =
      static_cast<uint64_t>(static_cast<double>(chunks::kBaseMemory) + 4 * std::min(bytes, chunk_bytes)) +
      (uint64_t{32} << 20);
  const double rate = static_cast<double>(sample->bytes) / std::max(seconds, 1e-6);
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("files", files->size());
    json.member("source_bytes", static_cast<uint64_t>(bytes));
    json.member("sampled_bytes", sample->bytes);
    json.member("tokens", static_cast<uint64_t>(tokens));
    json.member("rows", static_cast<uint64_t>(rows));
    json.member("chunks", static_cast<uint64_t>(chunk_count));
    json.member("disk_bytes", static_cast<uint64_t>(tokens * per_token));
    json.member("memory_bytes_per_worker", memory);
    json.member("seconds", bytes / rate);
    json.member("relative_error", error);
    json.end_object();
    context.console.out(json);
    return kExitFine;
  }
  const std::string bars = " ± " + format_fixed(100 * error, 0) + " %";
  TextTable table({Align::left, Align::right});
  table.add({"sources", format_byte_count(static_cast<uint64_t>(bytes)) + " in " +
                            format_count(files->size()) + " files"});
  table.add({"tokens", format_count(static_cast<uint64_t>(tokens)) + bars});
  table.add({"rows", format_count(static_cast<uint64_t>(rows)) + bars});
  table.add({"chunks", format_count(static_cast<uint64_t>(chunk_count))});
  table.add({"disk", format_byte_count(static_cast<uint64_t>(tokens * per_token)) +
                         ", by the usual bytes per token"});
  table.add({"memory", format_byte_count(memory) + " with one worker"});
  table.add({"time", format_seconds(bytes / rate) + " with one worker, by the sample's rate, which is cold"});
  context.console.out(table.text(2));
  return kExitFine;
}

const PositionalSpec kInputs = {.name = "INPUT",
                                .help =
                                    "JSON lines (plain, .gz, .zst), texts, directories, globs; with Python "
                                    "also Parquet, Arrow, hf://, https://",
                                .type = ValueType::file,
                                .is_repeated = true};
const PositionalSpec kDirectory = {
    .name = "DIR", .help = "the directory of the chunks", .type = ValueType::directory};

std::vector<OptionSpec> joined(std::vector<OptionSpec> options, const std::vector<OptionSpec>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

std::vector<OptionSpec> rebuild_options() {
  std::vector<OptionSpec> options = chunks_build_options();
  options.push_back({.name = "tokenizer",
                     .short_name = 't',
                     .type = ValueType::file,
                     .value_name = "TOKENIZER",
                     .help = "where it is now, if it is no longer where it was"});
  options.push_back({.name = "progress",
                     .type = ValueType::choice,
                     .value_name = "HOW",
                     .help = "how to show progress",
                     .default_text = "auto",
                     .choices = {"auto", "json"}});
  options.push_back({.name = "dry-run", .help = "tell what would be done; write nothing"});
  return options;
}

}  // namespace

int build_and_tell(CommandContext& context, const Path& directory, const Plan& plan,
                   const Tokenizer& tokenizer, const std::vector<uint64_t>& numbers,
                   const chunks::ScanReport* scan) {
  const SetPaths paths{directory};
  const auto options = build_options(context);
  if (!options.ok()) return fail(context, options.error());
  const Watch watch = chunks_watch(context);
  const auto report = chunks::build_chunks(paths, plan, tokenizer, numbers, *options, watch);
  context.console.end_progress();
  const auto status = chunks::status_of(paths, plan, {.compares_sources = false}, watch);
  if (status.ok())
    if (const Status written = chunks::write_metadata(paths, plan, *status); !written.ok())
      context.console.warn(written.error().describe());
  if (!report.ok()) return fail(context, report.error());
  if (!status.ok()) return fail(context, status.error());

  for (const std::string& named : report->problems.named()) context.console.warn(named);
  if (report->problems.total() > 0)
    context.console.warn(format_count(report->problems.total()) +
                         " documents could not be read and were left out; --strict makes that an error");
  for (const auto& failed : report->failed)
    context.console.error("chunk " + std::to_string(failed.number) + ": " + failed.error.describe());
  const ChunkCounts& counts = report->counts;
  const double filled = utilization(counts, plan.parameters.sequence_length);
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("directory", directory.string());
    json.member("complete", status->is_complete());
    json.member("total_chunks", plan.entries.size());
    json.member("built", report->built);
    json.member("by_others", report->by_others);
    json.member("failed", report->failed.size());
    json.member("rows", counts.rows);
    json.member("documents", counts.documents);
    json.member("tokens_in", counts.tokens_in);
    json.member("tokens", counts.tokens);
    json.member("utilization", filled);
    json.member("bytes", report->written_bytes);
    json.member("source_bytes", report->source_bytes);
    json.begin_object("left_out");
    json.member("broken", counts.broken);
    json.member("invalid_utf8", counts.invalid_utf8);
    json.member("missing_field", counts.missing_field);
    json.member("empty", counts.empty);
    json.member("too_short", counts.too_short);
    json.member("duplicates", counts.duplicates);
    json.end_object();
    add_numbers(json, "missing", status->with(ChunkState::missing));
    json.member("new_documents", scan ? scan->documents : 0);
    json.member("workers", report->workers);
    json.member("seconds", report->seconds);
    json.end_object();
    context.console.out(json);
  } else if (!context.console.is_quiet) {
    context.console.out(
        "built " + format_count(report->built) + " of " + format_count(plan.entries.size()) + " chunks in " +
        format_seconds(report->seconds) + ": " + format_count(counts.documents) + " documents, " +
        format_count(counts.tokens) + " tokens in " + format_count(counts.rows) + " rows, " +
        format_fixed(100 * filled, 2) + " % filled, " + format_byte_count(report->written_bytes) + "\n");
    if (counts.tokens != counts.tokens_in)
      context.console.error("tokens in: " + format_count(counts.tokens_in));
    if (counts.left_out() > 0)
      context.console.out("left out: " + format_count(counts.left_out()) + " documents (" +
                          format_count(counts.broken) + " broken, " + format_count(counts.invalid_utf8) +
                          " not UTF-8, " + format_count(counts.missing_field) + " without the field, " +
                          format_count(counts.empty) + " empty, " + format_count(counts.too_short) +
                          " too short, " + format_count(counts.duplicates) + " duplicates)\n");
  }
  if (!report->failed.empty()) return kExitGaps;
  const bool was_part = context.arguments.has("start-chunk") || context.arguments.has("end-chunk") ||
                        context.arguments.has("shard");
  return was_part || status->with(ChunkState::missing).empty() ? kExitFine : kExitGaps;
}

std::vector<CommandSpec> chunks_build_commands() {
  const OptionSpec output = {.name = "output",
                             .short_name = 'o',
                             .type = ValueType::directory,
                             .value_name = "DIR",
                             .help = "the directory of the chunks"};
  CommandSpec plan;
  plan.name = "plan";
  plan.summary = "make or extend the plan of a set, and build nothing";
  plan.positionals = {kInputs};
  plan.options = joined({output}, chunks_plan_options());
  plan.examples = {{"lmemo chunks plan corpus.jsonl -t gpt2 -o corpus.chunks",
                    "Then any number of machines build: chunks fill corpus.chunks."}};
  plan.run = [](CommandContext& context) { return run_plan_or_build(context, false); };

  CommandSpec build;
  build.name = "build";
  build.summary = "tokenise, pack and compress a corpus into chunks";
  build.details =
      "What is there already is kept: run it again after a kill, or in several processes at once. Settings "
      "may stand in lmemo.toml under [chunks].";
  build.positionals = {kInputs};
  build.options = joined(joined({output}, chunks_plan_options()), chunks_build_options());
  build.options.push_back({.name = "mode",
                           .type = ValueType::choice,
                           .value_name = "MODE",
                           .help = "inverse: only what is missing, as always",
                           .default_text = "normal",
                           .choices = {"normal", "inverse"}});
  build.options.push_back({.name = "resume", .help = "go on where a build stopped, as always"});
  build.examples = {
      {"lmemo chunks build corpus.jsonl.zst -t models/llama -o corpus.chunks --sequence-length 2048",
       "Rows of 2,048 tokens."},
      {"lmemo chunks build 'data/*.jsonl' -t gpt2 -o corpus.chunks --shard 0/4",
       "The first of four machines."}};
  build.exit_meanings = {{kExitGaps, "chunks are missing"}};
  build.run = [](CommandContext& context) { return run_plan_or_build(context, true); };

  CommandSpec fill;
  fill.name = "fill";
  fill.summary = "find the gaps of a set and build just them";
  fill.positionals = {kDirectory};
  fill.options = rebuild_options();
  fill.examples = {{"lmemo chunks fill corpus.chunks", "After a kill, or beside another builder."}};
  fill.exit_meanings = {{kExitGaps, "chunks are missing"}};
  fill.run = run_fill;

  CommandSpec grow;
  grow.name = "grow";
  grow.summary = "add new inputs, or what was appended to old ones";
  grow.details = "Old chunks stay as they are. Without an INPUT: the inputs of the plan, looked at again.";
  grow.positionals = {kDirectory,
                      {.name = "INPUT",
                       .help = kInputs.help,
                       .type = ValueType::file,
                       .is_required = false,
                       .is_repeated = true}};
  grow.options = rebuild_options();
  grow.examples = {
      {"lmemo chunks grow corpus.chunks new.jsonl", "Chunks for new.jsonl behind those that are there."}};
  grow.exit_meanings = {{kExitGaps, "chunks are missing"}};
  grow.run = run_grow;

  CommandSpec repair;
  repair.name = "repair";
  repair.summary = "set damaged and stale chunks aside and build them again";
  repair.positionals = {kDirectory};
  repair.options = rebuild_options();
  repair.examples = {{"lmemo chunks repair corpus.chunks", "Costs the damaged chunks, not the set."}};
  repair.exit_meanings = {{kExitGaps, "a chunk could not be built again"}};
  repair.run = run_repair;

  CommandSpec estimate;
  estimate.name = "estimate";
  estimate.summary = "tell rows, chunks, disk, memory and time from a sample";
  estimate.positionals = {kInputs};
  estimate.options = chunks_plan_options();
  estimate.examples = {
      {"lmemo chunks estimate 'data/*.jsonl' -t gpt2 --sequence-length 2048", "Before building."}};
  estimate.run = run_estimate;
  return {plan, build, fill, grow, repair, estimate};
}

}  // namespace lmemo::cli
