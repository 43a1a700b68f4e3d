// lmemo chunks show, verify, clean: what looks at chunks; and the group itself.
#include <algorithm>

#include "base/units.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/chunks_support.h"
#include "cli/confirmation.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

using chunks::ChunkState;
using chunks::SetPaths;

// One character for a chunk, or for as many as fit a line's worth of them: the worst counts.
std::string chunk_map(const chunks::SetStatus& status, size_t columns) {
  const size_t count = status.states.size(), cells = std::min(count, columns * 8);
  std::string map;
  for (size_t cell = 0; cell < cells; ++cell) {
    const size_t first = cell * count / cells, last = std::max(first + 1, (cell + 1) * count / cells);
    const auto has = [&](ChunkState state) {
      return std::find(status.states.begin() + static_cast<ptrdiff_t>(first),
                       status.states.begin() + static_cast<ptrdiff_t>(last),
                       state) != status.states.begin() + static_cast<ptrdiff_t>(last);
    };
    if (cell > 0 && cell % columns == 0) map += "\n  ";
    map += has(ChunkState::damaged)   ? "x"
           : has(ChunkState::stale)   ? "~"
           : has(ChunkState::missing) ? "·"
                                      : "█";
  }
  return map;
}

int exit_code_of(const chunks::SetStatus& status) {
  if (!status.damaged.empty() || !status.coverage_problems.empty()) return kExitDamage;
  return status.is_complete() ? kExitFine : kExitGaps;
}

void status_json(CommandContext& context, const Path& directory, const chunks::Plan& plan,
                 const chunks::SetStatus& status) {
  const ChunkCounts counts = status.counts();
  const double room = static_cast<double>(counts.rows) * plan.parameters.sequence_length;
  JsonWriter json = begin_json(context);
  json.member("directory", directory.string());
  json.member("complete", status.is_complete());
  json.member("total_chunks", plan.entries.size());
  json.member("found", status.with(ChunkState::sound).size());
  json.member("total_sequences", counts.rows);
  json.member("total_tokens", counts.tokens);
  json.member("tokens_in", counts.tokens_in);
  json.member("documents", counts.documents);
  json.member("left_out", counts.left_out());
  json.member("utilization", room > 0 ? static_cast<double>(counts.tokens) / room : 0.0);
  add_numbers(json, "missing", status.with(ChunkState::missing));
  add_numbers(json, "damaged", status.with(ChunkState::damaged));
  add_numbers(json, "stale", status.with(ChunkState::stale));
  add_numbers(json, "building", status.claimed);
  json.member("bytes", status.bytes());
  json.member("sequence_length", plan.parameters.sequence_length);
  json.member("strategy", plan.parameters.strategy);
  json.member("compression", plan.parameters.compression);
  json.begin_object("tokenizer");
  json.member("name", plan.parameters.tokenizer_name);
  json.member("identity", plan.parameters.tokenizer.hex());
  json.end_object();
  json.begin_array("gone_sources");
  for (const std::string& gone : status.sources.gone) json.value(gone);
  json.end_array();
  json.begin_array("grown_sources");
  for (const std::string& grown : status.sources.grown) json.value(grown);
  json.end_array();
  json.begin_array("problems");
  for (const auto& damaged : status.damaged)
    json.value("chunk " + std::to_string(damaged.number) + ": " + damaged.what);
  for (const std::string& problem : status.coverage_problems) json.value(problem);
  json.end_array();
  json.member("checked", status.checked);
  json.member("checked_bytes", status.checked_bytes);
  json.end_object();
  context.console.out(json);
}

void status_words(CommandContext& context, const Path& directory, const chunks::Plan& plan,
                  const chunks::SetStatus& status) {
  Console& console = context.console;
  const ChunkCounts counts = status.counts();
  const double room = static_cast<double>(counts.rows) * plan.parameters.sequence_length;
  const size_t sound = status.with(ChunkState::sound).size();
  console.out(console.styled(Style::bold, printable(directory.string())) + "  " +
              (status.is_complete() ? console.styled(Style::green, "complete")
                                    : console.styled(Style::yellow, "not complete")) +
              "\n");
  TextTable table({Align::left, Align::left});
  table.add({"chunks", format_count(sound) + " of " + format_count(plan.entries.size())});
  for (const ChunkState state : {ChunkState::missing, ChunkState::damaged, ChunkState::stale})
    if (const auto numbers = status.with(state); !numbers.empty())
      table.add({std::string(name_of(state)), ranges_in_words(numbers)});
  if (!status.claimed.empty()) {
    std::string words = ranges_in_words(status.claimed);
    const double rate = recent_rate(status);
    if (rate > 0)
      words += "; " + format_fixed(rate, 2) + " chunks/s, " +
               format_seconds(static_cast<double>(plan.entries.size() - sound) / rate) + " left";
    table.add({"being built", words});
  }
  table.add({"rows",
             format_count(counts.rows) + " of " + format_count(plan.parameters.sequence_length) + " tokens"});
  table.add(
      {"tokens", format_count(counts.tokens) + (counts.tokens == counts.tokens_in
                                                    ? ", all that came in"
                                                    : "; " + format_count(counts.tokens_in) + " CAME IN")});
  table.add(
      {"filled", format_fixed(room > 0 ? 100 * static_cast<double>(counts.tokens) / room : 0, 2) + " %"});
  table.add(
      {"documents", format_count(counts.documents) + ", " + format_count(counts.left_out()) + " left out"});
  table.add({"size", format_byte_count(status.bytes()) +
                         (counts.tokens > 0 ? ", " +
                                                  format_fixed(static_cast<double>(status.bytes()) /
                                                                   static_cast<double>(counts.tokens),
                                                               3) +
                                                  " bytes per token"
                                            : "")});
  if (status.checked > 0)
    table.add({"checked", format_count(status.checked) + " chunks, " +
                              format_byte_count(status.checked_bytes) + ": every byte"});
  table.add({"made with", plan.parameters.tokenizer_name + " (" +
                              plan.parameters.tokenizer.hex().substr(0, 12) + "), " +
                              plan.parameters.strategy + ", " + plan.parameters.compression + " " +
                              plan.parameters.level});
  console.out(table.text(2));
  if (!plan.entries.empty())
    console.out("\n  " + chunk_map(status, 64) + "\n  █ sound  · missing  x damaged  ~ stale\n");
  for (const auto& damaged : status.damaged)
    console.out(console.styled(Style::red, "damaged") + "  chunk " + std::to_string(damaged.number) + ": " +
                printable(damaged.what) + "\n");
  for (const std::string& problem : status.coverage_problems)
    console.out(console.styled(Style::red, "problem") + "  " + printable(problem) + "\n");
  for (const std::string& gone : status.sources.gone) console.warn("source is gone: " + gone);
  if (const auto& grown = status.sources.grown; !grown.empty())
    console.note(grown.front() +
                 (grown.size() > 1 ? " and " + format_count(grown.size() - 1) + " others" : "") +
                 (grown.size() > 1 ? " have" : " has") + " grown; `lmemo chunks grow " + directory.string() +
                 "` adds what is new");
  if (!status.damaged.empty() || !status.with(ChunkState::stale).empty())
    console.note("`lmemo chunks repair " + directory.string() + "` builds damaged and stale chunks again");
  else if (!status.with(ChunkState::missing).empty())
    console.note("`lmemo chunks fill " + directory.string() + "` builds what is missing");
}

// `found` tells the exit code of what was found; an error has its own.
int look(CommandContext& context, const chunks::StatusOptions& options,
         int (*found)(const chunks::SetStatus&)) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const auto plan = existing_plan(directory);
  if (!plan.ok()) return fail(context, plan.error());
  const auto status = chunks::status_of(SetPaths{directory}, *plan, options, chunks_watch(context));
  context.console.end_progress();
  if (!status.ok()) return fail(context, status.error());
  if (context.console.is_json) {
    status_json(context, directory, *plan, *status);
  } else if (context.console.is_quiet) {
    for (const ChunkState state : {ChunkState::missing, ChunkState::damaged, ChunkState::stale})
      for (const uint64_t number : status->with(state)) context.console.out(std::to_string(number) + "\n");
  } else {
    status_words(context, directory, *plan, *status);
  }
  if (options.check == chunks::Check::all) {
    // What was read in full and is sound is known from now on; a registry that cannot be written is no damage.
    [[maybe_unused]] const Status kept = chunks::update_registry(SetPaths{directory}, status->registry);
    [[maybe_unused]] const Status written = chunks::write_metadata(SetPaths{directory}, *plan, *status);
  }
  return found(*status);
}

int run_show(CommandContext& context) {
  return look(context, {}, [](const chunks::SetStatus&) { return static_cast<int>(kExitFine); });
}

int run_verify(CommandContext& context) {
  chunks::StatusOptions options{.check = chunks::Check::all};
  if (auto sample = context.arguments.text("sample")) {
    const bool is_percentage = sample->ends_with("%");
    char* end = nullptr;
    const double number = std::strtod(sample->c_str(), &end);
    // A bare 5 could be a count, a percentage or all there is five times.
    if (end == sample->c_str() || number <= 0 || (*end != '\0' && std::string_view(end) != "%") ||
        (!is_percentage && number > 1))
      return misuse(context, "--sample: found \"" + *sample + "\"; expected a percentage such as 5%");
    options.sample = std::min(1.0, is_percentage ? number / 100 : number);
  }
  options.workers =
      static_cast<unsigned>(std::clamp<uint64_t>(context.arguments.count("workers").value_or(1), 1, 1024));
  return look(context, options, exit_code_of);
}

int run_clean(CommandContext& context) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const auto leftovers = chunks::find_leftovers(SetPaths{directory});
  if (!leftovers.ok()) return fail(context, leftovers.error());
  uint64_t bytes = 0;
  for (const auto& leftover : *leftovers) bytes += leftover.bytes;
  const bool is_dry_run = context.arguments.has("dry-run");
  const auto tell_json = [&] {
    JsonWriter json = begin_json(context);
    json.member("dry_run", is_dry_run);
    json.begin_array("leftovers");
    for (const auto& leftover : *leftovers) json.value(leftover.path.string());
    json.end_array();
    json.member("bytes", bytes);
    json.end_object();
    context.console.out(json);
    return kExitFine;
  };
  const bool is_json = context.console.is_json;  // One object, and that is the error if nothing is removed.
  if (!is_json)
    for (const auto& leftover : *leftovers) context.console.out(leftover.path.string() + "\n");
  if (leftovers->empty()) {
    context.console.note("nothing is left of dead builds");
    return is_json ? tell_json() : kExitFine;
  }
  context.console.note(format_count(leftovers->size()) + " files, " + format_byte_count(bytes));
  if (!is_dry_run) {
    if (const auto code = ask_to_go_ahead(context, "Remove them?")) return *code;
    for (const auto& leftover : *leftovers)
      if (const auto removed = chunks::remove_leftover(leftover); !removed.ok())
        return fail(context, removed.error());
  }
  return is_json ? tell_json() : kExitFine;
}

const PositionalSpec kDirectory = {
    .name = "DIR", .help = "the directory of the chunks", .type = ValueType::directory};
const OptionSpec kProgress = {.name = "progress",
                              .type = ValueType::choice,
                              .value_name = "HOW",
                              .help = "how to show progress",
                              .default_text = "auto",
                              .choices = {"auto", "json"}};

}  // namespace

std::vector<CommandSpec> chunks_look_commands() {
  CommandSpec show;
  show.name = "show";
  show.summary = "tell what a set has, lacks and has wrong";
  show.details =
      "Files that changed since they were built are read in full. With --quiet: the numbers of chunks that "
      "are missing, damaged or stale.";
  show.positionals = {kDirectory};
  show.options = {kProgress};
  show.examples = {{"lmemo chunks show corpus.chunks", "A map of the chunks, sizes, what to do."}};
  show.run = run_show;

  CommandSpec verify;
  verify.name = "verify";
  verify.summary = "check every byte of a set, and the plan against its sources";
  verify.positionals = {kDirectory};
  verify.options = {{.name = "sample",
                     .type = ValueType::text,
                     .value_name = "5%",
                     .help = "read only so many of the chunks, spread evenly"},
                    {.name = "workers",
                     .type = ValueType::count,
                     .value_name = "N",
                     .help = "threads",
                     .default_text = "1"},
                    kProgress};
  verify.examples = {{"lmemo chunks verify corpus.chunks && train", "Before a long run."}};
  verify.exit_meanings = {{kExitGaps, "chunks are missing or stale"}, {kExitDamage, "damage found"}};
  verify.run = run_verify;

  CommandSpec clean;
  clean.name = "clean";
  clean.summary = "remove what dead builds left, and chunks that repair set aside";
  clean.positionals = {kDirectory};
  clean.options = confirmation_options();
  clean.examples = {{"lmemo chunks clean corpus.chunks --dry-run", "Which files would go?"}};
  clean.run = run_clean;
  return {show, verify, clean};
}

std::vector<CommandSpec> chunks_commands() {
  CommandSpec group;
  group.name = "chunks";
  group.summary = "pack a corpus into checked training chunks, and mend them";
  for (auto& commands : {chunks_build_commands(), chunks_mend_commands(), chunks_look_commands()})
    group.subcommands.insert(group.subcommands.end(), commands.begin(), commands.end());
  group.subcommands.push_back(chunks_estimate_command());
  group.subcommands.push_back(chunks_export_command());
  group.examples = {
      {"lmemo chunks build corpus.jsonl --tokenizer gpt2 --output corpus.chunks", "JSON lines to rows."}};
  return {group};
}

}  // namespace lmemo::cli
