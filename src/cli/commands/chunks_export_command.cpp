// lmemo chunks export: rows for those who train elsewhere.
#include "base/units.h"
#include "cli/commands/chunks_support.h"
#include "faces/chunks/export.h"

namespace lmemo::cli {
namespace {

int run_export(CommandContext& context) {
  const Path directory = directory_argument(context, context.arguments.positional(0).value());
  const Path output = directory_argument(context, context.arguments.text("output").value());
  const std::string format = context.arguments.text("to").value();
  const auto set = ChunkSet::open(directory);
  if (!set.ok()) return fail(context, set.error());
  const Status status = chunks::export_rows(**set, format, output, chunks_watch(context));
  context.console.end_progress();
  if (!status.ok()) return fail(context, status.error());
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("output", output.string());
    json.member("format", format);
    json.member("rows", (*set)->row_count());
    json.member("tokens", (*set)->token_count());
    json.end_object();
    context.console.out(json);
  } else if (context.console.is_quiet) {
    context.console.out(output.string() + "\n");
  } else {
    context.console.out("wrote " + format_count((*set)->row_count()) + " rows, " +
                        format_count((*set)->token_count()) + " tokens to " + output.string() + "\n");
  }
  return kExitFine;
}

}  // namespace

CommandSpec chunks_export_command() {
  CommandSpec command;
  command.name = "export";
  command.summary = "write the rows of a set in another program's format";
  command.details =
      "Each row is one sequence, without padding. megatron: rows.bin and rows.idx; mds: for "
      "mosaicml-streaming; arrow: for datasets.load_from_disk; npy: flat arrays.";
  command.positionals = {
      {.name = "DIR", .help = "the directory of the chunks", .type = ValueType::directory}};
  command.options = {{.name = "to",
                      .type = ValueType::choice,
                      .value_name = "FORMAT",
                      .help = "which format",
                      .choices = {"megatron", "mds", "arrow", "npy"},
                      .is_required = true},
                     {.name = "output",
                      .short_name = 'o',
                      .type = ValueType::directory,
                      .value_name = "OUT",
                      .help = "a new directory",
                      .is_required = true},
                     {.name = "progress",
                      .type = ValueType::choice,
                      .value_name = "HOW",
                      .help = "how to show progress",
                      .default_text = "auto",
                      .choices = {"auto", "json"}}};
  command.examples = {{"lmemo chunks export corpus.chunks --to megatron --output out",
                       "IndexedDataset(\"out/rows\") opens it."}};
  command.run = run_export;
  return command;
}

}  // namespace lmemo::cli
