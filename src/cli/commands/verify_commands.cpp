// lmemo verify and lmemo repair: is the store sound, and make it so.
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"

namespace lmemo::cli {
namespace {

void add_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.begin_array(name);
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void add_report(JsonWriter& json, const VerifyReport& report) {
  json.member("segments", report.segments);
  json.member("records", report.records);
  json.member("bytes", report.bytes);
  json.begin_array("damage");
  for (const Damage& damage : report.damage) {
    json.begin_object();
    json.member("file", damage.file);
    json.member("offset", damage.offset);
    json.member("what", damage.what);
    json.member("digest", damage.digest ? std::optional(damage.digest->hex()) : std::nullopt);
    json.end_object();
  }
  json.end_array();
  add_texts(json, "unreadable", report.unreadable);
  add_texts(json, "leftovers", report.leftovers);
  add_texts(json, "foreign", report.foreign);
}

void say_findings(Console& console, const VerifyReport& report) {
  for (const Damage& damage : report.damage) {
    std::string line = damage.file + ", byte " + std::to_string(damage.offset) + ": " + damage.what;
    if (damage.digest) line += " (entry " + damage.digest->hex().substr(0, 16) + ")";
    console.out(console.styled(Style::red, "damage") + "    " + printable(line) + "\n");
  }
  for (const std::string& file : report.unreadable)
    console.out(console.styled(Style::red, "unreadable") + " " + printable(file) + "\n");
  for (const std::string& file : report.leftovers)
    console.out(console.styled(Style::yellow, "leftover") + "  " + printable(file) + ": its writer died\n");
  for (const std::string& file : report.foreign)
    console.out("foreign   " + printable(file) + ": not written by lmemo, left alone\n");
}

std::string plural(uint64_t count, const std::string& noun) {
  return format_count(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string extent(const VerifyReport& report) {
  return plural(report.segments, "segment") + ", " + plural(report.records, "record") + ", " +
         format_byte_count(report.bytes);
}

void note_unreadable(Console& console, const VerifyReport& report) {
  if (!report.unreadable.empty())
    console.note(
        "what cannot be read is neither checked nor repaired: run this as its owner, or look at the disk");
}

// With --quiet: the files that need attention.
void out_paths(CommandContext& context, const VerifyReport& report) {
  std::set<std::string> files(report.leftovers.begin(), report.leftovers.end());
  for (const Damage& damage : report.damage) files.insert(damage.file);
  for (const std::string& file : report.unreadable) files.insert(file.substr(0, file.find(':')));
  for (const std::string& file : files)
    context.console.out((context.settings.store() / file).string() + "\n");
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(system_clock().now_ns() - start_ns_) / 1e9; }

 private:
  int64_t start_ns_ = system_clock().now_ns();
};

int verify_exit_code(const VerifyReport& report) {
  if (!report.damage.empty()) return kExitDamage;
  if (!report.unreadable.empty()) return kExitFailed;
  return report.leftovers.empty() ? kExitFine : kExitGaps;
}

int run_verify(CommandContext& context) {
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  const Stopwatch stopwatch;
  const auto report = (*store)->verify(context.console.watch());
  if (!report.ok()) return fail(context, report.error());

  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("store", context.settings.store().string());
    json.member("is_clean", report->is_clean());
    add_report(json, *report);
    json.end_object();
    console.out(json);
  } else if (console.is_quiet) {
    out_paths(context, *report);
  } else {
    say_findings(console, *report);
    const std::string verdict = report->is_clean()        ? console.styled(Style::green, "sound")
                                : !report->damage.empty() ? console.styled(Style::red, "damaged")
                                : !report->unreadable.empty()
                                    ? console.styled(Style::red, "not all could be read")
                                    : console.styled(Style::yellow, "sound, with leftovers");
    console.out(verdict + ": " + extent(*report) + "\n");
    console.note("checked " + context.settings.store().string() + " in " +
                 format_seconds(stopwatch.seconds()));
    if (!report->damage.empty() || !report->leftovers.empty())
      console.note("run `lmemo repair`: it keeps every sound record");
    note_unreadable(console, *report);
  }
  return verify_exit_code(*report);
}

int run_repair(CommandContext& context) {
  auto store = open_existing_store(context, Access::change);
  if (!store.ok()) return fail(context, store.error());
  const Stopwatch stopwatch;
  const auto report = (*store)->repair(context.console.watch());
  if (!report.ok()) return fail(context, report.error());

  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("store", context.settings.store().string());
    json.member("kept_records", report->kept_records);
    json.member("lost_records", report->lost_records);
    json.member("removed_files", report->removed_files);
    json.begin_object("found");
    add_report(json, report->found);
    json.end_object();
    json.end_object();
    console.out(json);
  } else if (console.is_quiet) {
    out_paths(context, report->found);
  } else if (report->found.is_clean()) {
    console.out(console.styled(Style::green, "nothing to repair") + ": " + extent(report->found) + "\n");
  } else {
    say_findings(console, report->found);
    console.out("repaired: " + plural(report->kept_records, "record") + " kept, " +
                plural(report->lost_records, "record") + " lost, " + plural(report->removed_files, "file") +
                " removed\n");
    console.note("repaired " + context.settings.store().string() + " in " +
                 format_seconds(stopwatch.seconds()));
    if (report->lost_records > 0) console.note("what was lost is computed again when it is next asked for");
    note_unreadable(console, report->found);
  }
  if (!report->found.unreadable.empty()) return kExitFailed;
  return report->lost_records > 0 ? kExitGaps : kExitFine;
}

}  // namespace

std::vector<CommandSpec> verify_commands() {
  CommandSpec verify;
  verify.name = "verify";
  verify.summary = "check every byte of the store, and change nothing";
  verify.details =
      "A file that cannot be read is named; if nothing else is wrong, the exit code is 1.\n"
      "With --quiet: the paths of the files that need attention.";
  verify.examples = {{"lmemo verify", "Names each damaged record: file, byte, what was found and expected."},
                     {"lmemo verify --quiet | xargs -n 1 lmemo inspect", "Look into the damaged files."}};
  verify.exit_meanings = {{kExitGaps, "sound, but a writer that died left work to take over"},
                          {kExitDamage, "damage found"}};
  verify.run = run_verify;

  CommandSpec repair;
  repair.name = "repair";
  repair.summary = "take over what dead writers left, and drop damaged records";
  repair.details =
      "Damaged segments are rewritten without their damaged records; every sound record is kept.\n"
      "A file that cannot be read is left alone and named, and the exit code is 1.\n"
      "With --quiet: the paths of the files that needed attention.";
  repair.examples = {
      {"lmemo repair", "Keeps every sound record; what is lost is computed again when it is asked for."}};
  repair.exit_meanings = {{kExitGaps, "the store is sound again, but records were lost"}};
  repair.run = run_repair;
  return {verify, repair};
}

}  // namespace lmemo::cli
