// lmemo chunks fill, grow, repair: what brings a set that is there up to date.
#include <algorithm>
#include <set>

#include "base/units.h"
#include "cli/commands/chunks_support.h"

namespace lmemo::cli {
namespace {

using chunks::ChunkState;
using chunks::SetPaths;

const PositionalSpec kDirectory = {
    .name = "DIR", .help = "the directory of the chunks", .type = ValueType::directory};

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

int run_fill(CommandContext& context) {
  if (const Status checked = check_chunks_settings(context.settings); !checked.ok())
    return fail(context, checked.error());
  return fill_gaps(context, directory_argument(context, context.arguments.positional(0).value()));
}

// What a plan was made of, without files that are gone since.
std::vector<std::string> inputs_left(CommandContext& context, const chunks::Plan& plan) {
  std::vector<std::string> left;
  for (const std::string& input : plan.inputs) {
    std::error_code ignored;
    const bool is_file =
        input.find("://") == std::string::npos && input.find_first_of("*?") == std::string::npos;
    if (is_file && !std::filesystem::exists(input, ignored))
      context.console.warn(input + " is gone; what was planned of it stays");
    else
      left.push_back(input);
  }
  return left;
}

int run_grow(CommandContext& context) {
  if (const Status checked = check_chunks_settings(context.settings); !checked.ok())
    return fail(context, checked.error());
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const bool is_dry_run = chunks_flag(context, "dry-run");
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
    if (inputs.empty()) inputs = inputs_left(context, *plan);
    planned = make_or_extend_plan(context, directory, std::move(*plan), nullptr, inputs, is_dry_run);
  }
  if (!planned.ok()) return fail(context, planned.error());
  // Old chunks stay as they are, stale ones too.
  const auto asked = asked_chunks(context, planned->plan.entries.size());
  if (!asked.ok()) return fail(context, asked.error());
  const auto found = chunks::list_chunks(SetPaths{directory});
  if (!found.ok()) return fail(context, found.error());
  const std::vector<uint64_t> numbers = missing_among(*asked, *found);
  if (is_dry_run) {
    tell_plan(context, directory, *planned, true, numbers);
    return kExitFine;
  }
  const auto tokenizer = tokenizer_of_plan(context, planned->plan);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
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

Result<std::set<uint64_t>> set_aside_before(const SetPaths& paths) {
  FileSystem& files = real_file_system();
  std::set<uint64_t> numbers;
  LMEMO_ASSIGN(const FileStatus status, files.status(paths.aside()));
  if (status.type != FileType::directory) return numbers;
  LMEMO_ASSIGN(const std::vector<std::string> names, files.list(paths.aside()));
  for (const std::string& name : names) {
    const std::string_view chunk = std::string_view(name).substr(0, name.find(".chunk") + 6);
    if (const auto number = SetPaths::number_of_chunk(chunk)) numbers.insert(*number);
  }
  return numbers;
}

int run_repair(CommandContext& context) {
  if (const Status checked = check_chunks_settings(context.settings); !checked.ok())
    return fail(context, checked.error());
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

  const auto asked = asked_chunks(context, plan->entries.size());
  if (!asked.ok()) return fail(context, asked.error());
  const auto unfinished = set_aside_before(paths);  // By a repair that was killed.
  if (!unfinished.ok()) return fail(context, unfinished.error());
  std::vector<uint64_t> bad, not_asked;
  for (uint64_t number = 0; number < status->states.size(); ++number)
    if (status->states[number] == ChunkState::damaged || status->states[number] == ChunkState::stale ||
        (status->states[number] == ChunkState::missing && unfinished->contains(number)))
      (std::binary_search(asked->begin(), asked->end(), number) ? bad : not_asked).push_back(number);
  for (const auto& damaged : status->damaged)
    context.console.note("chunk " + std::to_string(damaged.number) + " is damaged: " + damaged.what);
  if (!not_asked.empty())
    context.console.note("not asked for, and left as they are: " + ranges_in_words(not_asked));
  if (chunks_flag(context, "dry-run")) {
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
    if (status->states[number] == ChunkState::missing) continue;
    if (const Status moved = set_aside(paths, number); !moved.ok()) return fail(context, moved.error());
  }
  if (const Status forgotten = chunks::update_registry(paths, {}, bad); !forgotten.ok())
    context.console.warn(forgotten.error().describe());
  return build_and_tell(context, directory, *plan, **tokenizer, numbers, nullptr);
}

}  // namespace

int fill_gaps(CommandContext& context, const Path& directory) {
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
    if (const double rate = recent_rate(*status); rate > 0)
      words += " and " + format_seconds(static_cast<double>(gaps.size()) / rate) +
               " at the rate of the last build";
    context.console.note(words);
  }
  if (!status->damaged.empty())
    context.console.warn(format_count(status->damaged.size()) + " chunks are damaged; `lmemo chunks repair " +
                         directory.string() + "` builds them again");
  if (chunks_flag(context, "dry-run")) {
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

std::vector<CommandSpec> chunks_mend_commands() {
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
                       .help = chunks_inputs(false).help,
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
  return {fill, grow, repair};
}

}  // namespace lmemo::cli
