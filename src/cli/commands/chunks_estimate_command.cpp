// lmemo chunks estimate: what a set would take.
#include "base/units.h"
#include "cli/commands/chunks_support.h"
#include "cli/text_table.h"
#include "faces/chunks/estimate.h"

namespace lmemo::cli {
namespace {

void tell(CommandContext& context, const chunks::Estimate& found) {
  const auto whole = [](double number) { return static_cast<uint64_t>(number + 0.5); };
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("files", found.files);
    json.member("source_bytes", whole(found.source_bytes));
    json.member("sampled_bytes", found.sampled_bytes);
    json.member("documents", whole(found.documents));
    json.member("tokens", whole(found.tokens));
    json.member("rows", whole(found.rows));
    json.member("chunks", whole(found.chunks));
    json.member("disk_bytes", whole(found.disk_bytes));
    json.member("memory_bytes_per_worker", found.memory_bytes_per_worker);
    json.member("seconds", found.seconds);
    json.member("relative_error", found.relative_error);
    json.member("from_starts", found.is_from_starts);
    json.end_object();
    context.console.out(json);
    return;
  }
  const std::string bars =
      found.relative_error > 0 ? " ± " + format_fixed(100 * found.relative_error, 1) + " %" : "";
  TextTable table({Align::left, Align::left});
  table.add({"sources", format_byte_count(whole(found.source_bytes)) + " in " + format_count(found.files) +
                            " files, " + format_byte_count(found.sampled_bytes) + " of them looked at" +
                            (found.is_from_starts ? "; of compressed ones the start" : "")});
  table.add({"documents", format_count(whole(found.documents))});
  table.add({"tokens", format_count(whole(found.tokens)) + bars});
  table.add({"rows", format_count(whole(found.rows)) + bars});
  table.add({"chunks", format_count(whole(found.chunks))});
  table.add({"disk", format_byte_count(whole(found.disk_bytes)) + bars});
  table.add({"memory", format_byte_count(found.memory_bytes_per_worker) + " with one worker"});
  table.add({"time", format_seconds(found.seconds) + " with one worker, if the machine goes on as now"});
  context.console.out(table.text(2));
}

int run_estimate(CommandContext& context) {
  if (const Status checked = check_chunks_settings(context.settings); !checked.ok())
    return fail(context, checked.error());
  const auto wanted = wanted_chunks(context);
  if (!wanted.ok()) return fail(context, wanted.error());
  const ScratchFolder scratch;
  const auto files = input_files(context, context.arguments.positionals(), scratch.path(),
                                 wanted->plan.parameters.text_field, scratch.path());
  if (!files.ok()) return fail(context, files.error());
  const auto found = chunks::estimate(*files, wanted->plan, *wanted->tokenizer);
  if (!found.ok()) return fail(context, found.error());
  tell(context, *found);
  return kExitFine;
}

}  // namespace

CommandSpec chunks_estimate_command() {
  CommandSpec estimate;
  estimate.name = "estimate";
  estimate.summary = "tell rows, chunks, disk, memory and time from a sample";
  estimate.details =
      "Looks at 4 MB, spread over all inputs, and builds them. The error bars say by how much the parts of "
      "the sample differ, at 95 %; "
      "--dedup is not looked at.";
  estimate.positionals = {chunks_inputs(true)};
  estimate.options = chunks_plan_options();
  estimate.examples = {
      {"lmemo chunks estimate 'data/*.jsonl' -t gpt2 --sequence-length 2048", "Before building."}};
  estimate.run = run_estimate;
  return estimate;
}

}  // namespace lmemo::cli
