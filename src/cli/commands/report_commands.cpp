// lmemo report: what is stored, how well it served, and what needs attention, as one page.
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/followed.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/report/gather_report.h"
#include "cli/report/report_page.h"
#include "cli/shell_word.h"

namespace lmemo::cli {
namespace {

void add_shares(JsonWriter& json, std::string_view name, const std::vector<ReportShare>& shares) {
  json.begin_array(name);
  for (const ReportShare& share : shares) {
    json.begin_object();
    json.member("name", share.name);
    json.member("entries", share.entries);
    json.member("bytes", share.bytes);
    json.end_object();
  }
  json.end_array();
}

void report_json(CommandContext& context, const ReportData& report, const std::string& file) {
  JsonWriter json = begin_json(context);
  json.member("file", file);
  json.member("store", report.store);
  json.member("needs_attention", report.needs_attention);
  json.member("sentence", report.sentence);
  if (report.command.empty())
    json.member_null("run");
  else
    json.member("run", report.command);
  json.member("entries", report.entries);
  json.member("live_bytes", report.live_bytes);
  json.member("disk_bytes", report.disk_bytes);
  json.member("max_bytes", report.max_bytes);
  add_shares(json, "kinds", report.kinds);
  add_shares(json, "models", report.models);
  add_shares(json, "tokenizers", report.tokenizers);
  json.begin_array("runs");
  for (const ReportRun& run : report.runs) {
    json.begin_object();
    json.member("run_id", run.id);
    json.member("face", run.face);
    json.member("source", run.source);
    json.member("started_at", format_time_utc(run.started_ns));
    json.member("cache_hits", run.hits);
    json.member("cache_misses", run.misses);
    json.member("hit_rate", run.hit_rate());
    json.member("spent_seconds", run.spent_seconds);
    json.member("saved_seconds", run.saved_seconds);
    json.end_object();
  }
  json.end_array();
  json.begin_array("faces");
  for (const ReportFace& face : report.faces) {
    json.begin_object();
    json.member("face", face.name);
    json.member("cache_hits", face.hits);
    json.member("cache_misses", face.misses);
    json.member("hit_rate", face.hit_rate());
    json.member("saved_seconds", face.saved_seconds);
    json.end_object();
  }
  json.end_array();
  json.begin_object("miss_reasons");
  for (const ReportCount& reason : report.miss_reasons) json.member(reason.name, reason.count);
  json.end_object();
  json.begin_array("chunks");
  for (const ReportChunks& chunks : report.chunk_sets) {
    json.begin_object();
    json.member("directory", chunks.directory);
    json.member("total_chunks", chunks.total);
    json.member("missing", chunks.missing);
    json.member("damaged", chunks.damaged);
    json.member("stale", chunks.stale);
    json.member("total_sequences", chunks.rows);
    json.member("total_tokens", chunks.tokens);
    json.member("bytes", chunks.bytes);
    json.member("utilization", chunks.utilization);
    json.end_object();
  }
  json.end_array();
  json.begin_array("activations");
  for (const ReportPresence& presence : report.presence) {
    json.begin_object();
    json.member("model", presence.model);
    json.member("prompts", presence.prompts);
    json.member("layers", presence.layers.size());
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.console.out(json);
}

// Beside the old page and then in its place: a reader never sees half a page.
Status write_page(const std::filesystem::path& file, const std::string& page) {
  FileSystem& files = real_file_system();
  const Path beside = file.string() + "." + std::to_string(system_clock().now_ns()) + ".part";
  Status done;
  {
    LMEMO_ASSIGN(const std::unique_ptr<WritableFile> out, files.create(beside));
    const Bytes bytes = bytes_of(page);
    done = out->append(std::span(&bytes, 1));
  }
  if (done.ok()) done = files.rename(beside, file);
  if (!done.ok()) static_cast<void>(files.remove(beside));
  return done;
}

int run_report(CommandContext& context) {
  ReportData report;
  report.version = context.environment.version;
  report.made_at = format_time_utc(system_clock().now_ns());
  report.store = context.settings.store().string();
  if (context.settings.find("store")->origin == "--store")
    report.store_words = " --store " + shell_word(report.store);
  const Watch watch = context.console.watch();

  std::error_code ignored;
  if (std::filesystem::exists(context.settings.store(), ignored)) {
    Result<std::unique_ptr<Store>> store =
        open_existing_store(context, Access::look, [&](const Notice& notice) {
          report.is_damaged |= notice.code == ErrorCode::corruption;
          report.is_unreadable |= notice.code == ErrorCode::io_error;
        });
    if (!store.ok()) return fail(context, store.error());
    if (const Status status = gather_sizes(**store, report, watch); !status.ok())
      return fail(context, status.error());
    // Metrics are history: a report without them is a report.
    if (const Status status = gather_runs(context.settings.store(), report); !status.ok())
      context.console.warn(status.error().message);
    if (const Status status = gather_presence(**store, report); !status.ok())
      return fail(context, status.error());
  }
  for (const std::string& chunks : context.arguments.texts("chunks")) {
    const Status status =
        gather_chunks(followed(context.environment.working_directory / chunks), report, watch);
    if (!status.ok()) return fail(context, status.error());
  }
  judge(report);

  const std::filesystem::path file =
      context.environment.working_directory / context.arguments.text("output").value_or("lmemo-report.html");
  if (std::filesystem::is_directory(file, ignored))
    return misuse(context, "--output: " + file.string() + " is a directory, expected a file");
  if (const Status written = write_page(file, report_page(report)); !written.ok())
    return fail(context, written.error());
  if (context.console.is_json) {
    report_json(context, report, file.string());
  } else if (context.console.is_quiet) {
    context.console.out(file.string() + "\n");
  } else {
    context.console.out(report.sentence + (report.command.empty() ? "" : " " + report.command) + "\n" +
                        file.string() + "\n");
  }
  return kExitFine;
}

}  // namespace

std::vector<CommandSpec> report_commands() {
  CommandSpec report;
  report.name = "report";
  report.summary = "write one page that shows what is stored and what needs attention";
  report.details =
      "The page needs no network and no server: open it in a browser, keep it, send it. With --json its "
      "numbers are printed as well. Damage is told as far as opening shows it: lmemo verify reads every "
      "byte.";
  report.options = {{.name = "chunks",
                     .type = ValueType::directory,
                     .value_name = "DIR",
                     .help = "a directory of chunks to show as well; may be given several times"},
                    {.name = "output",
                     .short_name = 'o',
                     .type = ValueType::file,
                     .value_name = "FILE",
                     .help = "where the page is written",
                     .default_text = "lmemo-report.html"}};
  report.examples = {{"lmemo report -o report.html", "Then open report.html."},
                     {"lmemo report --chunks corpus.chunks", "With the map of its chunks."}};
  report.run = run_report;
  return {report};
}

}  // namespace lmemo::cli
