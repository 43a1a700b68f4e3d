// lmemo forward: what a trace tells, and what is stored of scoring calls.
#include "lmemo/forward.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/removal.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

constexpr uint64_t kDefaultSlowest = 10;
constexpr size_t kBarColumns = 24;

// The first line of a table is its heading.
void out_table(Console& console, const std::string& title, const TextTable& table) {
  console.out("\n" + console.styled(Style::bold, title) + "\n");
  console.out(table.text(2));
}

std::string percent(double share) { return format_fixed(share * 100, 1) + " %"; }

// ------------------------------------------------------------------------------------------------------- trace

void add_counts(JsonWriter& json, const TraceCounts& counts) {
  json.member("lookups", counts.lookups());
  json.member("hits", counts.hits);
  json.member("misses", counts.misses);
  json.member("hit_rate", counts.hit_rate());
  json.member("failures", counts.failures);
  json.member("waited", counts.waited);
  json.member("spent_seconds", counts.spent_seconds);
  json.member("saved_seconds", counts.saved_seconds);
}

void add_group(JsonWriter& json, std::string_view member, std::string_view name,
               const std::map<std::string, TraceCounts>& groups) {
  json.begin_array(member);
  for (const auto& [value, counts] : groups) {
    json.begin_object();
    if (name == "probe" && value.empty())
      json.member_null(name);
    else
      json.member(name, value);
    add_counts(json, counts);
    json.end_object();
  }
  json.end_array();
}

void trace_json(CommandContext& context, const std::string& path, const TraceReport& report) {
  JsonWriter json = begin_json(context);
  json.member("file", path);
  json.member("lines", report.lines);
  json.member("malformed", report.malformed);
  json.member("first_time", report.first_time_seconds);
  json.member("last_time", report.last_time_seconds);
  json.member("distinct_calls", report.distinct_calls);
  add_counts(json, report.total);
  add_group(json, "by_probe", "probe", report.by_probe);
  add_group(json, "by_view", "view_id", report.by_view);
  add_group(json, "by_op", "op", report.by_op);
  json.begin_array("curve");
  for (const CachePoint& point : report.curve) {
    json.begin_object();
    json.member("entries", point.entries);
    json.member("hits", point.hits);
    json.member("hit_rate", point.hit_rate);
    json.end_object();
  }
  json.end_array();
  json.begin_array("slowest");
  for (const SlowCall& call : report.slowest) {
    json.begin_object();
    json.member("line", call.line);
    json.member("wall_ms", call.wall_ms);
    json.member("hit", call.is_hit);
    json.member("probe", call.probe);
    json.member("op", call.op);
    json.member("view_id", call.view_id);
    json.member("prompt_hash", call.prompt_hash);
    json.member("top_k", call.top_k);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.console.out(json);
}

// Most time first, whether spent or saved.
void out_groups(Console& console, const std::string& name, const std::map<std::string, TraceCounts>& groups) {
  std::vector<std::pair<std::string, TraceCounts>> rows(groups.begin(), groups.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const double a_seconds = a.second.spent_seconds + a.second.saved_seconds;
    const double b_seconds = b.second.spent_seconds + b.second.saved_seconds;
    return a_seconds != b_seconds ? a_seconds > b_seconds : a.first < b.first;
  });
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add({name, "lookups", "hits", "hit rate", "failures", "spent", "saved"});
  for (const auto& [value, counts] : rows)
    table.add({value.empty() ? "(none)" : value, format_count(counts.lookups()), format_count(counts.hits),
               percent(counts.hit_rate()), format_count(counts.failures),
               format_seconds(counts.spent_seconds), format_seconds(counts.saved_seconds)});
  out_table(console, "by " + name, table);
}

void out_curve(Console& console, const TraceReport& report) {
  if (report.curve.empty()) return;
  TextTable table({Align::right, Align::right, Align::right, Align::left});
  table.add({"entries", "hits", "hit rate", ""});
  for (const CachePoint& point : report.curve) {
    std::string bar;
    for (size_t column = 0; column < static_cast<size_t>(point.hit_rate * kBarColumns + 0.5); ++column)
      bar += "█";
    table.add({format_count(point.entries), format_count(point.hits), percent(point.hit_rate), bar});
  }
  out_table(console, "what a cache of another size would have hit", table);
  console.out("  more than " + format_count(report.curve.back().entries) +
              " entries would not have helped\n");
}

void out_slowest(Console& console, const TraceReport& report) {
  if (report.slowest.empty()) return;
  TextTable table(
      {Align::right, Align::left, Align::left, Align::left, Align::left, Align::left, Align::right});
  table.add({"wall", "", "op", "view_id", "prompt_hash", "probe", "line"});
  for (const SlowCall& call : report.slowest)
    // A view that carries its model has a long text; its name comes first.
    table.add({format_seconds(call.wall_ms / 1000), call.is_hit ? "hit" : "miss", call.op,
               call.view_id.substr(0, call.view_id.find(" {")), call.prompt_hash.substr(0, 12),
               call.probe.value_or("(none)"), format_count(call.line)});
  out_table(console, "slowest calls", table);
}

void trace_words(CommandContext& context, const TraceReport& report) {
  Console& console = context.console;
  const TraceCounts& total = report.total;
  const auto row = [&](std::string_view name, const std::string& text) {
    console.out(console.styled(Style::bold, std::string(name) + std::string(9 - name.size(), ' ')) + text +
                "\n");
  };
  row("lookups",
      format_count(total.lookups()) + " of " + format_count(report.distinct_calls) + " different calls");
  row("hits",
      format_count(total.hits) + " (" + percent(total.hit_rate()) + ")" +
          (total.waited > 0 ? ", " + format_count(total.waited) + " waited for another's forward pass" : ""));
  if (total.failures > 0) row("failures", format_count(total.failures));
  row("spent", format_seconds(total.spent_seconds));
  row("saved", format_seconds(total.saved_seconds));
  row("span", format_seconds(report.last_time_seconds - report.first_time_seconds));
  out_groups(console, "probe", report.by_probe);
  out_groups(console, "view", report.by_view);
  out_groups(console, "op", report.by_op);
  out_curve(console, report);
  out_slowest(console, report);
}

int run_trace(CommandContext& context) {
  const std::string path = context.arguments.positional(0).value();
  const uint64_t slowest = context.arguments.count("slowest").value_or(kDefaultSlowest);
  const auto report =
      analyse_trace(context.environment.working_directory / path, slowest, context.console.watch());
  context.console.end_progress();
  if (!report.ok()) return fail(context, report.error());
  if (report->malformed > 0)
    context.console.warn(
        format_count(report->malformed) + (report->malformed == 1 ? " line is" : " lines are") +
        " no line of a trace and left out; the first is line " + format_count(report->first_malformed_line) +
        ": " + printable(report->first_complaint));
  if (context.console.is_json) {
    trace_json(context, path, *report);
  } else if (report->total.lookups() + report->total.failures == 0) {
    context.console.note("no lookups in " + path);
  } else if (context.console.is_quiet) {
    for (const SlowCall& call : report->slowest) context.console.out(call.prompt_hash + "\n");
  } else {
    trace_words(context, *report);
  }
  return kExitFine;
}

// -------------------------------------------------------------------------------------------------------- show

// The fields that `show` groups by and `clear` chooses by: option, field, help.
struct ViewField {
  const char* option;
  const char* field;
  const char* help;
};
constexpr std::array kViewFields = {
    ViewField{"op", "op", "only this operation, such as next_token_dist"},
    ViewField{"view", "view_id", "only this view, such as base"},
    ViewField{"model", "model", "only this model"},
    ViewField{"revision", "revision", "only this revision of it"},
    ViewField{"adapter", "adapter", "only this adapter"},
    ViewField{"dtype", "dtype", "only this type of numbers"},
};
using ViewNames = std::array<std::string, kViewFields.size()>;

std::vector<OptionSpec> view_options() {
  std::vector<OptionSpec> options;
  for (const ViewField& field : kViewFields)
    options.push_back(
        {.name = field.option, .type = ValueType::text, .value_name = "NAME", .help = field.help});
  return options;
}

ScanFilter filter_of(const Arguments& arguments) {
  ScanFilter filter{kForwardKind, {}};
  for (const ViewField& field : kViewFields)
    if (const auto value = arguments.text(field.option))
      filter.fields.push_back({field.field, FieldValue(*value)});
  return filter;
}

std::string text_of_value(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.variant())) return *text;
  return std::holds_alternative<std::monostate>(value.variant()) ? "" : value.describe();
}

struct ViewTotal {
  uint64_t entries = 0;
  uint64_t value_bytes = 0;
  uint64_t stored_bytes = 0;

  void add(const EntryInfo& entry) {
    ++entries;
    value_bytes += entry.value_bytes;
    stored_bytes += entry.stored_bytes;
  }
};

Result<std::map<ViewNames, ViewTotal>> totals_of(CommandContext& context, Store& store, ViewTotal& all) {
  std::map<ViewNames, ViewTotal> totals;
  LMEMO_TRY(store.scan(filter_of(context.arguments), [&](const EntryInfo& entry) {
    ViewNames names;
    if (const Result<Key> key = entry.key(); key.ok())
      for (const Field& field : key->fields())
        for (size_t i = 0; i < kViewFields.size(); ++i)
          if (field.name == kViewFields[i].field) names[i] = text_of_value(field.value);
    totals[names].add(entry);
    all.add(entry);
    return !context.was_interrupted();
  }));
  if (context.was_interrupted()) return Error{ErrorCode::interrupted, "while listing entries"};
  return totals;
}

void add_total(JsonWriter& json, const ViewTotal& total) {
  json.member("entries", total.entries);
  json.member("value_bytes", total.value_bytes);
  json.member("stored_bytes", total.stored_bytes);
}

int run_show(CommandContext& context) {
  Console& console = context.console;
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  if (console.is_quiet && !console.is_json) {
    const Status scanned = (*store)->scan(filter_of(context.arguments), [&](const EntryInfo& entry) {
      console.out(entry.digest.hex() + "\n");
      return !context.was_interrupted();
    });
    return scanned.ok() ? kExitFine : fail(context, scanned.error());
  }
  ViewTotal all;
  const auto totals = totals_of(context, **store, all);
  if (!totals.ok()) return fail(context, totals.error());
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("store", context.settings.store().string());
    add_total(json, all);
    json.begin_array("views");
    for (const auto& [names, total] : *totals) {
      json.begin_object();
      for (size_t i = 0; i < kViewFields.size(); ++i) {
        if (names[i].empty())
          json.member_null(kViewFields[i].field);
        else
          json.member(kViewFields[i].field, names[i]);
      }
      add_total(json, total);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    console.out(json);
    return kExitFine;
  }
  console.out(format_count(all.entries) + (all.entries == 1 ? " result, " : " results, ") +
              format_byte_count(all.stored_bytes) + " in " + printable(context.settings.store().string()) +
              "\n");
  if (totals->empty()) return kExitFine;
  TextTable table({Align::left, Align::left, Align::left, Align::left, Align::left, Align::left, Align::right,
                   Align::right, Align::right});
  table.add({"op", "view", "model", "revision", "adapter", "dtype", "results", "values", "stored"});
  for (const auto& [names, total] : *totals) {
    std::vector<std::string> cells(names.begin(), names.end());
    for (std::string& cell : cells)
      if (cell.empty()) cell = "-";
    cells.insert(cells.end(), {format_count(total.entries), format_byte_count(total.value_bytes),
                               format_byte_count(total.stored_bytes)});
    table.add(cells);
  }
  console.out("\n" + table.text(2));
  return kExitFine;
}

int run_clear(CommandContext& context) {
  const ScanFilter filter = filter_of(context.arguments);
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, filter, [](const EntryInfo&) { return true; });
      },
      [&](Store& store) -> Result<RemovalReport> {
        if (filter.fields.empty()) return store.clear(kForwardKind);
        return store.erase_matching(filter, context.console.watch());
      });
}

}  // namespace

std::vector<CommandSpec> forward_commands() {
  CommandSpec trace;
  trace.name = "trace";
  trace.summary = "tell hits, time spent and saved, and the best cache size from a trace";
  trace.details =
      "FILE is what BackendInstrumentation(trace_path=FILE) wrote. Lines that are no lines of a trace are "
      "counted and left out.\n"
      "With --quiet: the prompt hashes of the slowest calls.";
  trace.positionals = {{.name = "FILE", .help = "a trace, one JSON object a line", .type = ValueType::file}};
  trace.options = {{.name = "slowest",
                    .type = ValueType::count,
                    .value_name = "N",
                    .help = "how many of the slowest calls to list",
                    .default_text = std::to_string(kDefaultSlowest)}};
  trace.examples = {{"lmemo forward trace run/trace.jsonl",
                     "By probe, by view, by op; the curve over cache sizes; the slowest calls."},
                    {"lmemo forward trace run/trace.jsonl --json", "Everything, for programs."}};
  trace.needs_settings = false;
  trace.run = run_trace;

  CommandSpec show;
  show.name = "show";
  show.summary = "show what is stored, by operation, view and model";
  show.details = "With --quiet: the digests of the entries.";
  show.options = view_options();
  show.examples = {{"lmemo forward show", "How many results of which model, and what they take."},
                   {"lmemo forward show --model gpt2 --json", "One model, for programs."}};
  show.run = run_show;

  CommandSpec forward;
  forward.name = "forward";
  forward.summary = "analyse traces of scoring calls; show or clear their results";
  forward.subcommands = {
      trace, show,
      removing_command("clear", "remove stored results, all or those of a model, view or operation",
                       view_options(),
                       {{"lmemo forward clear --adapter runs/7", "Forget what one adapter said."},
                        {"lmemo forward clear --yes", "Forget everything without asking."}},
                       run_clear)};
  forward.examples = {{"lmemo forward trace trace.jsonl", "Where did the time of a run go?"}};
  return {forward};
}

}  // namespace lmemo::cli
