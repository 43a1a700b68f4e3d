// lmemo prune, evict, compact and clear: give space back.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/confirmation.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

struct Total {
  uint64_t entries = 0;
  uint64_t stored_bytes = 0;
};

// What a command is about to remove.
struct Preview {
  Total all;
  std::map<std::string, Total, std::less<>> by_kind;
  std::vector<Digest> digests;  // Filled only if they are to be listed.

  void add(std::string_view kind, uint64_t stored_bytes) {
    auto found = by_kind.find(kind);
    if (found == by_kind.end()) found = by_kind.emplace(kind, Total{}).first;
    for (Total* total : {&all, &found->second}) {
      ++total->entries;
      total->stored_bytes += stored_bytes;
    }
  }
};

bool lists_digests(const CommandContext& context) {
  return context.console.is_quiet && !context.console.is_json && context.arguments.has("dry-run");
}

Result<Preview> preview_matching(CommandContext& context, Store& store, const std::string& kind,
                                 const std::function<bool(const EntryInfo&)>& goes) {
  Preview preview;
  ScanFilter filter;
  filter.kind = kind;
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

// Least recently used first, until what is left fits. The store decides by the same rule, by whole segments where
// it can, so the numbers are close but not exact.
Result<Preview> preview_eviction(CommandContext& context, Store& store, uint64_t target_bytes) {
  struct Candidate {
    int64_t used_ns;
    uint64_t stored_bytes;
    std::string kind;
    Digest digest;
  };
  std::vector<Candidate> candidates;
  uint64_t left = 0;
  LMEMO_TRY(store.scan({}, [&](const EntryInfo& entry) {
    candidates.push_back({std::max(entry.written_ns, entry.accessed_ns), entry.stored_bytes,
                          std::string(entry.kind), entry.digest});
    left += entry.stored_bytes;
    return !context.was_interrupted();
  }));
  if (context.was_interrupted()) return Error{ErrorCode::interrupted, "while counting"};
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.used_ns < b.used_ns; });
  Preview preview;
  const bool wants_digests = lists_digests(context);
  for (const Candidate& candidate : candidates) {
    if (left <= target_bytes) break;
    left -= candidate.stored_bytes;
    preview.add(candidate.kind, candidate.stored_bytes);
    if (wants_digests) preview.digests.push_back(candidate.digest);
  }
  return preview;
}

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

// The table goes to standard error: it belongs to the question, not to the answer.
void list_kinds(CommandContext& context, const Preview& preview) {
  TextTable table({Align::left, Align::right, Align::right});
  for (const auto& [kind, total] : preview.by_kind)
    table.add({kind, format_count(total.entries) + (total.entries == 1 ? " entry" : " entries"),
               format_byte_count(total.stored_bytes)});
  context.console.note("to be removed from " + context.settings.store().string() + ":");
  for (const std::string& line : table.lines(2)) context.console.note(line.substr(0, line.size() - 1));
}

using PreviewMaker = std::function<Result<Preview>(Store&)>;
using Remover = std::function<Result<RemovalReport>(Store&)>;

// One story for all three: count, list, ask, remove, tell.
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

int run_prune(CommandContext& context) {
  const double older_than_seconds = *context.arguments.seconds("older-than");
  const std::string kind = context.arguments.text("kind").value_or("");
  const int64_t before_ns =
      system_clock().now_ns() - static_cast<int64_t>(std::min(older_than_seconds * 1e9, 9e18));
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, kind, [&](const EntryInfo& entry) {
          return std::max(entry.written_ns, entry.accessed_ns) < before_ns;
        });
      },
      [&](Store& store) { return store.prune(older_than_seconds, kind, context.console.watch()); });
}

int run_evict(CommandContext& context) {
  const uint64_t target_bytes = *context.arguments.byte_count("to");
  return remove_with_consent(
      context, [&](Store& store) { return preview_eviction(context, store, target_bytes); },
      [&](Store& store) { return store.evict(target_bytes, context.console.watch()); });
}

int run_clear(CommandContext& context) {
  const std::string kind = context.arguments.text("kind").value_or("");
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, kind, [](const EntryInfo&) { return true; });
      },
      [&](Store& store) { return store.clear(kind); });
}

int run_compact(CommandContext& context) {
  auto store = open_existing_store(context, Access::change);
  if (!store.ok()) return fail(context, store.error());
  const auto report = (*store)->compact(context.console.watch());
  if (!report.ok()) return fail(context, report.error());
  return show_removal(context, *report, "compacted");
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

}  // namespace

std::vector<CommandSpec> space_commands() {
  const OptionSpec kind = {
      .name = "kind", .type = ValueType::text, .value_name = "KIND", .help = "only entries of this kind"};
  CommandSpec compact;
  compact.name = "compact";
  compact.summary = "give space back to the disk, while others read and write";
  compact.details = "Rewrites what is alive into new segments and unlinks the old ones. Removes no entry.";
  compact.examples = {{"lmemo compact", "Disk use falls to about the live bytes that `lmemo show` tells."}};
  compact.run = run_compact;
  return {
      removing_command("prune", "drop entries that were neither stored nor found for a while",
                       {{.name = "older-than",
                         .type = ValueType::duration,
                         .value_name = "AGE",
                         .help = "how long, such as 30d, 12h or 1d12h",
                         .is_required = true},
                        kind},
                       {{"lmemo prune --older-than 30d", "Shows what would go, asks, removes."},
                        {"lmemo prune --older-than 12h --kind forward --dry-run", "Only look."}},
                       run_prune),
      removing_command("evict", "drop the least recently used entries until the store fits",
                       {{.name = "to",
                         .type = ValueType::byte_count,
                         .value_name = "SIZE",
                         .help = "what the store may take afterwards, such as 5GiB",
                         .is_required = true}},
                       {{"lmemo evict --to 5GiB --yes", "For a cron job: does not ask."}}, run_evict),
      compact,
      removing_command("clear", "remove every entry, or every entry of a kind", {kind},
                       {{"lmemo clear --kind forward", "Removes one kind and leaves the others alone."},
                        {"lmemo clear --yes", "Empties the store without asking."}},
                       run_clear),
  };
}

}  // namespace lmemo::cli
