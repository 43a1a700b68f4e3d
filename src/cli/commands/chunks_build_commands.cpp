// lmemo chunks plan and build; and what all commands that build have in common: the telling.
#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "cli/commands/chunks_support.h"

namespace lmemo::cli {
namespace {

using chunks::ChunkState;
using chunks::Plan;
using chunks::SetPaths;

double utilization(const ChunkCounts& counts, uint32_t sequence_length) {
  const double room = static_cast<double>(counts.rows) * sequence_length;
  return room > 0 ? static_cast<double>(counts.tokens) / room : 0;
}

int run_plan_or_build(CommandContext& context, bool builds) {
  if (const Status checked = check_chunks_settings(context.settings); !checked.ok())
    return fail(context, checked.error());
  const auto output = chunks_option(context, "output");
  if (!output) return misuse(context, "--output is missing: the directory of the chunks");
  const Path directory = directory_argument(context, *output);
  const bool is_dry_run = chunks_flag(context, "dry-run");
  if (context.arguments.positionals().empty()) {
    // The plan has the inputs, the parameters and the tokenizer.
    if (chunks_flag(context, "resume") || chunks_option(context, "mode") == "inverse")
      return fill_gaps(context, directory);
    return misuse(context, "INPUT is missing: files, directories or globs; --resume goes on without");
  }
  // What is wrong in the words is said before anything is written.
  if (const auto asked = asked_chunks(context, 0); !asked.ok()) return fail(context, asked.error());
  if (const auto options = build_options(context); !options.ok()) return fail(context, options.error());
  const auto wanted = wanted_chunks(context);
  if (!wanted.ok()) return fail(context, wanted.error());
  if (const Status ours = SetPaths{directory}.check_is_ours(); !ours.ok()) return fail(context, ours.error());
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
  if (planned->plan.documents() == 0)
    context.console.warn("no documents were found in the inputs; the set is empty");
  const auto numbers = asked_chunks(context, planned->plan.entries.size());
  if (!numbers.ok()) return fail(context, numbers.error());
  if (!builds || is_dry_run) {
    std::optional<std::vector<uint64_t>> to_build;
    if (builds) {
      const auto found = chunks::list_chunks(SetPaths{directory});
      if (!found.ok()) return fail(context, found.error());
      to_build = missing_among(*numbers, *found);
    }
    tell_plan(context, directory, *planned, is_dry_run, to_build);
    return kExitFine;
  }
  return build_and_tell(context, directory, planned->plan, *wanted->tokenizer, *numbers, &planned->scan);
}

std::vector<OptionSpec> joined(std::vector<OptionSpec> options, const std::vector<OptionSpec>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

std::vector<uint64_t> missing_among(const std::vector<uint64_t>& numbers,
                                    const std::vector<chunks::FoundChunk>& found) {
  std::vector<uint64_t> there, missing;
  for (const auto& chunk : found) there.push_back(chunk.number);  // They come in order.
  std::set_difference(numbers.begin(), numbers.end(), there.begin(), there.end(),
                      std::back_inserter(missing));
  return missing;
}

void tell_plan(CommandContext& context, const Path& directory, const PlannedChunks& planned, bool is_dry_run,
               const std::optional<std::vector<uint64_t>>& to_build) {
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
    if (to_build) add_numbers(json, "to_build", *to_build);
    json.end_object();
    context.console.out(json);
    return;
  }
  context.console.out(std::string(is_dry_run ? "would plan " : "planned ") +
                      format_count(planned.new_chunks) + " chunks of " +
                      format_count(planned.scan.documents) + " documents, " +
                      format_byte_count(planned.scan.bytes) + "; " +
                      (to_build ? "would build " + format_count(to_build->size()) + " of " : "") +
                      format_count(planned.plan.entries.size()) + " chunks in all\n");
}

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
    if (const Status written = chunks::write_metadata(paths, plan, *status);
        !written.ok() &&
        !(report.ok() && report->built == 0))  // Nobody may write to it, and nothing was to be written.
      context.console.warn(written.error().describe());
  if (!report.ok()) {
    const int code = fail(context, report.error());
    if (report.error().code == ErrorCode::no_space)
      context.console.note("make room; then `lmemo chunks fill " + directory.string() + "` goes on");
    return code;
  }
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
  } else if (!context.console.is_quiet && report->built == 0 && report->failed.empty()) {
    context.console.out(status->is_complete() ? "nothing to build: the set is complete, with " +
                                                    format_count(plan.entries.size()) + " chunks\n"
                                              : "nothing to build of what was asked for\n");
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
  const bool was_part = chunks_option(context, "start-chunk") || chunks_option(context, "end-chunk") ||
                        chunks_option(context, "shard");
  return was_part || status->with(ChunkState::missing).empty() ? kExitFine : kExitGaps;
}

std::vector<CommandSpec> chunks_build_commands() {
  const OptionSpec output = chunks_output_option();
  CommandSpec plan;
  plan.name = "plan";
  plan.summary = "make or extend the plan of a set, and build nothing";
  plan.positionals = {chunks_inputs(true)};
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
  build.positionals = {chunks_inputs(false)};
  build.options =
      joined(joined(joined({output}, chunks_plan_options()), chunks_build_options()), chunks_mode_options());
  build.examples = {
      {"lmemo chunks build corpus.jsonl.zst -t models/llama -o corpus.chunks --sequence-length 2048",
       "Rows of 2,048 tokens."},
      {"lmemo chunks build 'data/*.jsonl' -t gpt2 -o corpus.chunks --shard 0/4",
       "The first of four machines."}};
  build.exit_meanings = {{kExitGaps, "chunks are missing"}};
  build.run = [](CommandContext& context) { return run_plan_or_build(context, true); };

  return {plan, build};
}

}  // namespace lmemo::cli
