// lmemo show: what the store holds.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/near_name.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/field_words.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

struct ListedEntry {
  Digest digest;
  std::string kind;
  uint64_t value_bytes;
  uint64_t stored_bytes;
  int64_t written_ns;
  int64_t accessed_ns;
  std::vector<Field> fields;
};

ScanFilter filter_of(const Arguments& arguments) {
  ScanFilter filter;
  filter.kind = arguments.text("kind").value_or("");
  return filter;
}

// The youngest entries, youngest first. Keys are decoded only for those that are shown.
Result<std::vector<ListedEntry>> youngest_entries(Store& store, const CommandContext& context,
                                                  uint64_t limit) {
  std::vector<ListedEntry> entries;
  const auto is_younger = [](const ListedEntry& a, const ListedEntry& b) {
    return a.written_ns > b.written_ns;
  };
  // A heap with the oldest of the chosen ones on top.
  const auto visit = [&](const EntryInfo& info) {
    if (limit == 0 || context.was_interrupted()) return false;
    if (entries.size() == limit && info.written_ns <= entries.front().written_ns) return true;
    if (entries.size() == limit) {
      std::pop_heap(entries.begin(), entries.end(), is_younger);
      entries.pop_back();
    }
    ListedEntry entry{info.digest,
                      std::string(info.kind),
                      info.value_bytes,
                      info.stored_bytes,
                      info.written_ns,
                      info.accessed_ns,
                      {}};
    if (const Result<Key> key = info.key(); key.ok()) entry.fields = key->fields();
    entries.push_back(std::move(entry));
    std::push_heap(entries.begin(), entries.end(), is_younger);
    return true;
  };
  LMEMO_TRY(store.scan(filter_of(context.arguments), visit));
  if (context.was_interrupted()) return Error{ErrorCode::interrupted, "while listing entries"};
  std::sort_heap(entries.begin(), entries.end(), is_younger);
  return entries;
}

void add_kind(JsonWriter& json, const std::string& name, const KindStats& kind) {
  json.begin_object(name);
  json.member("entries", kind.entries);
  json.member("value_bytes", kind.value_bytes);
  json.member("stored_bytes", kind.stored_bytes);
  if (kind.max_bytes > 0) {
    json.member("max_bytes", kind.max_bytes);
  } else {
    json.member_null("max_bytes");
  }
  json.end_object();
}

void add_time(JsonWriter& json, std::string_view name, int64_t time_ns) {
  if (time_ns == 0) return json.member_null(name);
  json.member(name, format_time_utc(time_ns));
}

void show_json(CommandContext& context, const StoreStats& stats,
               const std::optional<std::vector<ListedEntry>>& list) {
  JsonWriter json = begin_json(context);
  json.member("store", context.settings.store().string());
  json.member("entries", stats.entries);
  json.member("live_bytes", stats.live_bytes);
  json.member("disk_bytes", stats.disk_bytes);
  if (stats.max_bytes > 0) {
    json.member("max_bytes", stats.max_bytes);
  } else {
    json.member_null("max_bytes");
  }
  json.member("segments", stats.segments);
  add_time(json, "oldest", stats.oldest_ns);
  add_time(json, "newest", stats.newest_ns);
  json.begin_object("kinds");
  for (const auto& [name, kind] : stats.kinds) add_kind(json, name, kind);
  json.end_object();
  if (list) {
    json.begin_array("list");
    for (const ListedEntry& entry : *list) {
      json.begin_object();
      json.member("digest", entry.digest.hex());
      json.member("kind", entry.kind);
      json.member("value_bytes", entry.value_bytes);
      json.member("stored_bytes", entry.stored_bytes);
      add_time(json, "written", entry.written_ns);
      add_time(json, "accessed", entry.accessed_ns);
      add_fields(json, "fields", entry.fields);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
  context.console.out(json);
}

// A bar of block characters, in eighths of a column; the largest is whole.
std::string bar_of(uint64_t bytes, uint64_t largest) {
  constexpr uint64_t kColumns = 20;
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (bytes == 0) return "";
  const auto eighths =
      static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(largest) * kColumns * 8);
  std::string bar;
  for (uint64_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[std::max<uint64_t>(eighths % 8, bar.empty() ? 1 : 0)];
}

// The first line of a table is its heading.
void out_table(Console& console, const TextTable& table) {
  const std::vector<std::string> lines = table.lines(2);
  for (size_t line = 0; line < lines.size(); ++line)
    console.out(line == 0 ? console.styled(Style::bold, lines[line].substr(0, lines[line].size() - 1)) + "\n"
                          : lines[line]);
}

void show_words(CommandContext& context, const StoreStats& stats,
                const std::optional<std::vector<ListedEntry>>& list) {
  Console& console = context.console;
  const int64_t now_ns = system_clock().now_ns();
  const auto line = [&](std::string_view name, const std::string& text) {
    console.out(console.styled(Style::bold, std::string(name) + std::string(9 - name.size(), ' ')) +
                printable(text) + "\n");
  };
  line("store", context.settings.store().string());
  line("entries", format_count(stats.entries));
  line("live", format_byte_count(stats.live_bytes));
  line("disk", format_byte_count(stats.disk_bytes) + " in " + format_count(stats.segments) +
                   (stats.segments == 1 ? " segment" : " segments"));
  line("limit", format_byte_limit(stats.max_bytes));
  if (stats.entries > 0) {
    line("oldest", format_time_utc(stats.oldest_ns) + " (" + format_age(stats.oldest_ns, now_ns) + ")");
    line("newest", format_time_utc(stats.newest_ns) + " (" + format_age(stats.newest_ns, now_ns) + ")");
  }
  if (!stats.kinds.empty()) {
    TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::left});
    table.add({"kind", "entries", "values", "stored", "limit", ""});
    uint64_t largest = 0;
    for (const auto& [name, kind] : stats.kinds) largest = std::max(largest, kind.stored_bytes);
    for (const auto& [name, kind] : stats.kinds)
      table.add({name, format_count(kind.entries), format_byte_count(kind.value_bytes),
                 format_byte_count(kind.stored_bytes), format_byte_limit(kind.max_bytes),
                 bar_of(kind.stored_bytes, largest)});
    console.out("\n");
    out_table(console, table);
  }
  if (list && !list->empty()) {
    TextTable table({Align::left, Align::left, Align::right, Align::left, Align::left});
    table.add({"entry", "kind", "value", "stored", "fields"});
    for (const ListedEntry& entry : *list)
      table.add({entry.digest.hex().substr(0, 16), entry.kind, format_byte_count(entry.value_bytes),
                 format_age(entry.written_ns, now_ns), describe_fields(entry.fields)});
    console.out("\n");
    out_table(console, table);
  }
}

int show_ids(CommandContext& context, Store& store) {
  const Status scanned = store.scan(filter_of(context.arguments), [&](const EntryInfo& entry) {
    context.console.out(entry.digest.hex() + "\n");
    return !context.was_interrupted();
  });
  if (!scanned.ok()) return fail(context, scanned.error());
  return context.was_interrupted() ? kExitInterrupted : kExitFine;
}

// The tables show the chosen kind alone; the totals stay those of the whole store.
void narrow_to_kind(CommandContext& context, const std::string& kind, StoreStats& stats) {
  if (!stats.kinds.contains(kind)) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : stats.kinds) names.push_back(name);
    context.console.note("no entries of kind \"" + kind + "\"." + did_you_mean(kind, names));
  }
  std::erase_if(stats.kinds, [&](const auto& item) { return item.first != kind; });
}

int run_show(CommandContext& context) {
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  if (context.console.is_quiet && !context.console.is_json) return show_ids(context, **store);

  StoreStats stats = (*store)->stats();
  if (const auto kind = context.arguments.text("kind")) narrow_to_kind(context, *kind, stats);
  std::optional<std::vector<ListedEntry>> list;
  if (const auto limit = context.arguments.count("entries")) {
    auto youngest = youngest_entries(**store, context, *limit);
    if (!youngest.ok()) return fail(context, youngest.error());
    list = std::move(*youngest);
  }
  context.console.is_json ? show_json(context, stats, list) : show_words(context, stats, list);
  return kExitFine;
}

}  // namespace

std::vector<CommandSpec> show_commands() {
  CommandSpec show;
  show.name = "show";
  show.summary = "show what the store holds and what it takes on disk";
  show.details = "With --quiet: the digest of every entry, one per line.";
  show.options = {
      {.name = "kind", .type = ValueType::text, .value_name = "KIND", .help = "only this kind in the tables"},
      {.name = "entries",
       .type = ValueType::count,
       .value_name = "N",
       .help = "also list the N youngest entries with their fields"},
  };
  show.examples = {
      {"lmemo show", "Totals, and a table by kind."},
      {"lmemo show --kind tokens --entries 5",
       "The five youngest token entries with the fields of their keys."},
      {"lmemo show --json | jq .kinds", "For programs."},
  };
  show.run = run_show;
  return {show};
}

}  // namespace lmemo::cli
