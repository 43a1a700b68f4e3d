// lmemo metrics: the runs that were recorded, newest first.
#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/text_table.h"
#include "stats/run_metrics.h"

namespace lmemo::cli {
namespace {

constexpr uint64_t kDefaultLimit = 20;

void metrics_json(CommandContext& context, const std::vector<RunRecord>& runs) {
  JsonWriter json = begin_json(context);
  json.begin_array("runs");
  for (const RunRecord& run : runs) {
    json.begin_object();
    json.member("run_id", run.run_id);
    json.member("face", run.face);
    json.member("started_at", format_time_utc(run.started_at_ns));
    json.member("source", run.source);
    json.member("tokenizer", run.tokenizer);
    json.member("wall_seconds", run.wall_seconds);
    json.member("total_tokens", run.total_tokens);
    json.begin_object("tokenization");
    json.member("total_sections", run.total_sections);
    json.member("cache_hits", run.cache_hits);
    json.member("cache_misses", run.cache_misses);
    json.member("total_tokenize_seconds", run.total_tokenize_seconds);
    json.member("cache_bytes_after", run.cache_bytes_after);
    json.end_object();
    json.begin_object("miss_reasons");
    for (const auto& [reason, count] : run.miss_reasons) json.member(reason, count);
    json.end_object();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.console.out(json);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void metrics_csv(Console& console, const std::vector<RunRecord>& runs) {
  console.out(
      "run_id,face,started_at,source,tokenizer,total_sections,cache_hits,cache_misses,total_tokenize_seconds,"
      "cache_bytes_after\n");
  for (const RunRecord& run : runs)
    console.out(run.run_id + "," + run.face + "," + format_time_utc(run.started_at_ns) + "," +
                csv_cell(run.source) + "," + run.tokenizer + "," + std::to_string(run.total_sections) + "," +
                std::to_string(run.cache_hits) + "," + std::to_string(run.cache_misses) + "," +
                std::to_string(run.total_tokenize_seconds) + "," + std::to_string(run.cache_bytes_after) +
                "\n");
}

void metrics_words(Console& console, const std::vector<RunRecord>& runs) {
  if (runs.empty()) return console.note("no runs were recorded");
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left});
  table.add({"started", "face", "items", "hits", "misses", "tokenised", "cache", "source"});
  for (const RunRecord& run : runs)
    table.add({format_time_utc(run.started_at_ns), run.face, format_count(run.total_sections),
               format_count(run.cache_hits), format_count(run.cache_misses),
               format_seconds(run.total_tokenize_seconds), format_byte_count(run.cache_bytes_after),
               run.source});
  console.out(table.text(0));
}

int run_metrics(CommandContext& context) {
  RunFilter filter;
  filter.limit = context.arguments.count("limit").value_or(kDefaultLimit);
  if (const auto since = context.arguments.seconds("since"))
    filter.since_ns = system_clock().now_ns() - static_cast<int64_t>(*since * 1e9);
  const auto runs = read_runs(context.settings.store() / "metrics.db", filter);
  if (!runs.ok()) return fail(context, runs.error());
  if (context.console.is_json)
    metrics_json(context, *runs);
  else if (context.arguments.has("csv"))
    metrics_csv(context.console, *runs);
  else if (context.console.is_quiet)
    for (const RunRecord& run : *runs) context.console.out(run.run_id + "\n");
  else
    metrics_words(context.console, *runs);
  return kExitFine;
}

}  // namespace

std::vector<CommandSpec> metrics_commands() {
  CommandSpec metrics;
  metrics.name = "metrics";
  metrics.summary = "show the runs that were recorded, newest first";
  metrics.details = "With --quiet: the ids of the runs.";
  metrics.options = {{.name = "limit",
                      .type = ValueType::count,
                      .value_name = "N",
                      .help = "at most so many; 0: all",
                      .default_text = std::to_string(kDefaultLimit)},
                     {.name = "since",
                      .type = ValueType::duration,
                      .value_name = "AGE",
                      .help = "only those not older than this, such as 24h"},
                     {.name = "csv", .help = "comma-separated values"}};
  metrics.examples = {{"lmemo metrics --since 24h --json", "For programs."}};
  metrics.run = run_metrics;
  return {metrics};
}

}  // namespace lmemo::cli
