#include "cli/commands/removal.h"

#include "base/units.h"
#include "cli/confirmation.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

std::string entries_of(const Total& total) {
  return format_count(total.entries) + (total.entries == 1 ? " entry, " : " entries, ") +
         format_byte_count(total.stored_bytes);
}

void add_removal(JsonWriter& json, const RemovalReport& report) {
  json.member("entries", report.entries);
  json.member("stored_bytes", report.stored_bytes);
  json.member("disk_bytes_before", report.disk_bytes_before);
  json.member("disk_bytes_after", report.disk_bytes_after);
}

int show_preview(CommandContext& context, const Preview& preview) {
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("store", context.settings.store().string());
    json.member("dry_run", true);
    json.member("entries", preview.all.entries);
    json.member("stored_bytes", preview.all.stored_bytes);
    json.begin_object("kinds");
    for (const auto& [kind, total] : preview.by_kind) {
      json.begin_object(kind);
      json.member("entries", total.entries);
      json.member("stored_bytes", total.stored_bytes);
      json.end_object();
    }
    json.end_object();
    json.end_object();
    console.out(json);
  } else if (console.is_quiet) {
    for (const Digest& digest : preview.digests) console.out(digest.hex() + "\n");
  } else {
    console.out("would remove " + entries_of(preview.all) + "\n");
  }
  return kExitFine;
}

// The table goes to standard error: it belongs to the question, not to the answer.
void list_kinds(CommandContext& context, const Preview& preview) {
  TextTable table({Align::left, Align::right, Align::right});
  for (const auto& [kind, total] : preview.by_kind)
    table.add({kind, format_count(total.entries) + (total.entries == 1 ? " entry" : " entries"),
               format_byte_count(total.stored_bytes)});
  context.console.note("to be removed from " + context.settings.store().string() + ":");
  for (const std::string& line : table.lines(2)) context.console.note(line.substr(0, line.size() - 1));
}

}  // namespace

void Preview::add(std::string_view kind, uint64_t stored_bytes) {
  auto found = by_kind.find(kind);
  if (found == by_kind.end()) found = by_kind.emplace(kind, Total{}).first;
  for (Total* total : {&all, &found->second}) {
    ++total->entries;
    total->stored_bytes += stored_bytes;
  }
}

bool lists_digests(const CommandContext& context) {
  return context.console.is_quiet && !context.console.is_json && context.arguments.has("dry-run");
}

Result<Preview> preview_matching(CommandContext& context, Store& store, const ScanFilter& filter,
                                 const std::function<bool(const EntryInfo&)>& goes) {
  Preview preview;
  const bool wants_digests = lists_digests(context);
  LMEMO_TRY(store.scan(filter, [&](const EntryInfo& entry) {
    if (goes(entry)) {
      preview.add(entry.kind, entry.stored_bytes);
      if (wants_digests) preview.digests.push_back(entry.digest);
    }
    return !context.was_interrupted();
  }));
  if (context.was_interrupted()) return Error{ErrorCode::interrupted, "while counting"};
  return preview;
}

int show_removal(CommandContext& context, const RemovalReport& report, const std::string& verb) {
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("store", context.settings.store().string());
    json.member("dry_run", false);
    add_removal(json, report);
    json.end_object();
    console.out(json);
  } else if (!console.is_quiet) {
    const bool tells_entries = report.entries > 0 || verb != "compacted";
    console.out(verb + (tells_entries ? " " + entries_of({report.entries, report.stored_bytes}) : "") +
                "; disk " + format_byte_count(report.disk_bytes_before) + " → " +
                format_byte_count(report.disk_bytes_after) + "\n");
  }
  return kExitFine;
}

int remove_with_consent(CommandContext& context, const PreviewMaker& preview_of, const Remover& remove) {
  const bool is_dry_run = context.arguments.has("dry-run");
  auto store = open_existing_store(context, is_dry_run ? Access::look : Access::change);
  if (!store.ok()) return fail(context, store.error());
  const auto preview = preview_of(**store);
  if (!preview.ok()) return fail(context, preview.error());
  if (is_dry_run) return show_preview(context, *preview);

  if (preview->all.entries > 0) {
    list_kinds(context, *preview);
    if (const auto refused = ask_to_go_ahead(context, "Remove " + entries_of(preview->all) + "?"))
      return *refused;
  }
  // Even with no entry to remove there may be space to give back.
  const auto report = remove(**store);
  if (!report.ok()) return fail(context, report.error());
  return show_removal(context, *report, "removed");
}

CommandSpec removing_command(std::string name, std::string summary, std::vector<OptionSpec> options,
                             std::vector<Example> examples, int (*run)(CommandContext&)) {
  CommandSpec command;
  command.name = std::move(name);
  command.summary = std::move(summary);
  command.details =
      "Lists and totals what would go, then asks. Without a terminal it needs --yes.\n"
      "With --dry-run --quiet: the digests of the entries that would go.";
  command.options = std::move(options);
  for (const OptionSpec& option : confirmation_options()) command.options.push_back(option);
  command.examples = std::move(examples);
  command.run = run;
  return command;
}

}  // namespace lmemo::cli
