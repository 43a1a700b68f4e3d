// lmemo inspect: what is in a file, damaged or not.
#include "lmemo/inspect.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/field_words.h"
#include "cli/text_table.h"
#include "faces/inspect_beside.h"

namespace lmemo::cli {
namespace {

constexpr uint64_t kDefaultRecords = 10;

void inspect_json(CommandContext& context, const std::string& path, const InspectedFile& file, size_t shown) {
  JsonWriter json = begin_json(context);
  json.member("file", path);
  json.member("file_bytes", file.file_bytes);
  json.member("version", file.version);
  json.member("nonce", to_hex(file.nonce));
  json.member("is_sealed", file.is_sealed);
  json.begin_array("blocks");
  for (const InspectedBlock& block : file.blocks) {
    json.begin_object();
    json.member("name", block.name);
    json.member("offset", block.offset);
    json.member("byte_count", block.byte_count);
    json.member("is_sound", block.is_sound);
    json.member("note", block.note);
    json.end_object();
  }
  json.end_array();
  json.member("record_count", file.records.size());
  json.begin_array("records");
  for (size_t index = 0; index < shown; ++index) {
    const InspectedRecord& record = file.records[index];
    json.begin_object();
    json.member("offset", record.offset);
    json.member("stored_bytes", record.stored_bytes);
    json.member("value_offset", record.value_offset);
    json.member("value_bytes", record.value_bytes);
    json.member("written", format_time_utc(record.written_ns));
    json.member("written_ns", record.written_ns);
    json.member("is_erasure", record.is_erasure);
    json.member("digest", record.digest.hex());
    if (record.key) {
      json.member("kind", record.key->kind());
      add_fields(json, "fields", record.key->fields());
    }
    json.end_object();
  }
  json.end_array();
  json.begin_array("problems");
  for (const std::string& problem : file.problems) json.value(problem);
  json.end_array();
  json.end_object();
  context.console.out(json);
}

void out_records(Console& console, const InspectedFile& file, size_t shown) {
  if (shown == 0) return;
  TextTable table(
      {Align::right, Align::right, Align::right, Align::left, Align::left, Align::left, Align::left});
  table.add({"offset", "stored", "value", "written", "digest", "kind", "fields"});
  for (size_t index = 0; index < shown; ++index) {
    const InspectedRecord& record = file.records[index];
    table.add({std::to_string(record.offset), std::to_string(record.stored_bytes),
               std::to_string(record.value_bytes), format_time_utc(record.written_ns),
               record.digest.hex().substr(0, 16),
               record.is_erasure ? "(erased)"
               : record.key      ? std::string(record.key->kind())
                                 : "(unreadable)",
               record.key ? describe_fields(record.key->fields()) : ""});
  }
  console.out(table.text(2));
}

void inspect_words(CommandContext& context, const std::string& path, const InspectedFile& file,
                   size_t shown) {
  Console& console = context.console;
  console.out(console.styled(Style::bold, printable(path)) + "\n");
  console.out("format version " + std::to_string(file.version) + ", " + format_count(file.file_bytes) +
              " bytes, " + (file.is_sealed ? "sealed" : "not sealed") + ", nonce " + to_hex(file.nonce) +
              "\n\n");

  TextTable blocks({Align::left, Align::right, Align::right, Align::left});
  blocks.add({"block", "offset", "bytes", "state"});
  for (const InspectedBlock& block : file.blocks)
    blocks.add({block.name, std::to_string(block.offset), std::to_string(block.byte_count),
                (block.is_sound ? "sound" : "DAMAGED") + (block.note.empty() ? "" : ": " + block.note)});
  console.out(blocks.text(2) + "\n");

  console.out(format_count(file.records.size()) + " sound records" +
              (shown < file.records.size() ? ", the first " + format_count(shown) : "") + "\n");
  out_records(console, file, shown);
  for (const std::string& problem : file.problems)
    console.out(console.styled(Style::red, "problem") + "  " + printable(problem) + "\n");
  if (shown < file.records.size()) console.note("--records all shows every record");
}

int show_beside(CommandContext& context, const std::string& path, const BesideFile& file) {
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("file", path);
    json.member("file_bytes", file.file_bytes);
    json.member("what", file.what);
    json.member("is_sound", file.is_sound);
    for (const auto& [name, value] : file.facts) json.member(name, value);
    json.member("line_count", file.line_count);
    json.begin_array("lines");
    for (const std::string& line : file.lines) json.value(line);
    json.end_array();
    json.end_object();
    console.out(json);
  } else if (!console.is_quiet) {
    console.out(console.styled(Style::bold, printable(path)) + "\n" + file.what + ", " +
                format_count(file.file_bytes) + " bytes, " +
                (file.is_sound ? "sound" : console.styled(Style::red, "DAMAGED")) + "\n");
    for (const auto& [name, value] : file.facts) console.out("  " + name + "  " + printable(value) + "\n");
    for (const std::string& line : file.lines) console.out("  " + printable(line) + "\n");
    if (file.lines.size() < file.line_count)
      console.note("the first " + format_count(file.lines.size()) + " of " + format_count(file.line_count) +
                   "; --records all shows every one");
  }
  return file.is_sound ? kExitFine : kExitDamage;
}

bool is_sound(const InspectedFile& file) {
  return file.problems.empty() && std::all_of(file.blocks.begin(), file.blocks.end(),
                                              [](const InspectedBlock& block) { return block.is_sound; });
}

int run_inspect(CommandContext& context) {
  const std::string limit_text = context.arguments.text("records").value_or(std::to_string(kDefaultRecords));
  const auto limit = limit_text == "all" ? Result<uint64_t>(UINT64_MAX) : parse_count(limit_text);
  if (!limit.ok())
    return misuse(context, "--records: found \"" + limit_text + "\"; expected a number or all");

  const std::string path = context.arguments.positional(0).value();
  // Files are opened without following links; who names a link means the file.
  std::error_code error;
  const std::filesystem::path named = context.environment.working_directory / path;
  const std::filesystem::path real = std::filesystem::canonical(named, error);
  const std::filesystem::path& place = error ? named : real;
  const auto file = inspect_file(place);
  if (!file.ok() && file.error().code == ErrorCode::incompatible)
    if (const auto beside = inspect_beside(place, *limit)) return show_beside(context, path, *beside);
  if (!file.ok()) return fail(context, file.error());
  const size_t shown = std::min<uint64_t>(*limit, file->records.size());
  if (context.console.is_json) {
    inspect_json(context, path, *file, shown);
  } else if (context.console.is_quiet) {
    for (const InspectedRecord& record : file->records) context.console.out(record.digest.hex() + "\n");
  } else {
    inspect_words(context, path, *file, shown);
  }
  return is_sound(*file) ? kExitFine : kExitDamage;
}

}  // namespace

std::vector<CommandSpec> inspect_commands() {
  CommandSpec inspect;
  inspect.name = "inspect";
  inspect.summary = "print what is in a file that lmemo wrote, damaged or not";
  inspect.details = "With --quiet: the digests of all sound records.";
  inspect.positionals = {{.name = "FILE",
                          .help = "a segment, sealed or not; a chunk, a plan, metrics.db, JSON",
                          .type = ValueType::file}};
  inspect.options = {{.name = "records",
                      .type = ValueType::text,
                      .value_name = "N|all",
                      .help = "how many records to print",
                      .default_text = std::to_string(kDefaultRecords)}};
  inspect.examples = {{"lmemo inspect FILE", "Blocks with their offsets, and the first records."},
                      {"lmemo inspect FILE --records all --json", "Everything, for programs."}};
  inspect.exit_meanings = {{kExitDamage, "damage found"}};
  inspect.run = run_inspect;
  return {inspect};
}

}  // namespace lmemo::cli
