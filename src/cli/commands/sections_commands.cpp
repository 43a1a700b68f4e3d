// lmemo sections: sync source trees, show, prune and clear what came of them.
#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/removal.h"
#include "cli/text_table.h"
#include "cli/tokenizer_argument.h"
#include "faces/sections/section_document.h"
#include "faces/sections/section_inventory.h"
#include "stats/run_metrics.h"

namespace lmemo::cli {
namespace {

using std::filesystem::path;

path home_of(const CommandContext& context) {
  return context.environment.variable ? context.environment.variable("HOME").value_or("/") : "/";
}

// What PATH… means: documents are read, everything else is a source itself.
Result<SectionDocument> sources_of(CommandContext& context) {
  SectionDocument all;
  for (const std::string& name : context.arguments.positionals()) {
    const path file = context.environment.working_directory / name;
    if (!is_document(file)) {
      all.sources.push_back({file});
      continue;
    }
    LMEMO_ASSIGN(SectionDocument document, read_document(file, home_of(context)));
    for (const std::string& warning : document.warnings) context.console.warn(warning);
    if (document.sources.empty())
      context.console.warn(name + ": names no training.sources; its own sections are not cached");
    if (all.id.empty()) all.id = document.id;
    if (!all.sequence_len) all.sequence_len = document.sequence_len;
    if (!all.cache_enabled) all.cache_enabled = document.cache_enabled;
    if (!all.cache_max_bytes) all.cache_max_bytes = document.cache_max_bytes;
    if (!all.prune_older_than_days) all.prune_older_than_days = document.prune_older_than_days;
    all.sources.insert(all.sources.end(), document.sources.begin(), document.sources.end());
  }
  return all;
}

// Flags win over the document.
void apply_flags(const Arguments& arguments, std::vector<SectionSource>& sources) {
  for (SectionSource& source : sources) {
    if (arguments.has("include")) source.include = arguments.texts("include");
    if (arguments.has("exclude")) source.exclude = arguments.texts("exclude");
    if (const auto count = arguments.count("max-files")) source.max_files = *count;
    if (const auto bytes = arguments.byte_count("max-bytes-per-file")) source.max_bytes_per_file = *bytes;
  }
}

std::string percent(double share) { return format_fixed(share * 100, 1) + " %"; }

void sync_json(CommandContext& context, const SectionRun& run, bool use_cache) {
  const SyncStats& stats = run.stats();
  JsonWriter json = begin_json(context);
  json.member("run_id", stats.run_id);
  json.member("total_sections", stats.total_sections);
  json.member("cache_hits", stats.cache_hits);
  json.member("cache_misses", stats.cache_misses);
  json.member("hit_rate", stats.hit_rate());
  json.member("total_tokens", stats.total_tokens);
  json.member("cut_sections", stats.cut_sections);
  json.member("total_tokenize_seconds", stats.total_tokenize_seconds);
  json.member("saved_seconds", stats.saved_seconds);
  json.member("wall_seconds", stats.wall_seconds);
  json.member("cache_bytes_after", stats.cache_bytes_after);
  json.member("cache_enabled", use_cache);
  json.member("files_read", stats.files_read);
  json.begin_object("miss_reasons");
  for (size_t i = 0; i < kMissReasons; ++i)
    json.member(name_of(static_cast<MissReason>(i)), stats.misses_by_reason[i]);
  json.end_object();
  json.begin_object("skipped");
  json.member("binary", stats.skipped_binary);
  json.member("not_utf8", stats.skipped_not_utf8);
  json.member("too_large", stats.skipped_too_large);
  json.member("over_max_files", stats.skipped_over_limit);
  json.member("symlinks", stats.skipped_links);
  json.end_object();
  json.member("failed", stats.failed);
  json.member("failed_puts", stats.failed_puts);
  json.begin_array("notices");
  for (const std::string& notice : run.notices()) json.value(notice);
  json.end_array();
  json.end_object();
  context.console.out(json);
}

void sync_words(CommandContext& context, const SectionRun& run) {
  const SyncStats& stats = run.stats();
  TextTable table({Align::left, Align::left});
  table.add({"sections", format_count(stats.total_sections)});
  table.add({"hits", format_count(stats.cache_hits) + " (" + percent(stats.hit_rate()) + ")"});
  std::string reasons;
  for (size_t i = 0; i < kMissReasons; ++i)
    if (stats.misses_by_reason[i] > 0)
      reasons += (reasons.empty() ? ": " : ", ") + format_count(stats.misses_by_reason[i]) + " " +
                 std::string(name_of(static_cast<MissReason>(i)));
  table.add({"misses", format_count(stats.cache_misses) + reasons});
  table.add({"tokens",
             format_count(stats.total_tokens) +
                 (stats.cut_sections > 0 ? ", " + format_count(stats.cut_sections) + " sections cut" : "")});
  table.add({"tokenised", "in " + format_seconds(stats.total_tokenize_seconds) + ", saved " +
                              format_seconds(stats.saved_seconds)});
  table.add({"cache", format_byte_count(stats.cache_bytes_after) + " after"});
  std::string skipped;
  for (const auto& [name, count] :
       {std::pair("binary", stats.skipped_binary), std::pair("not UTF-8", stats.skipped_not_utf8),
        std::pair("too large", stats.skipped_too_large),
        std::pair("behind --max-files", stats.skipped_over_limit), std::pair("links", stats.skipped_links),
        std::pair("failed", stats.failed)})
    if (count > 0) skipped += (skipped.empty() ? "" : ", ") + format_count(count) + " " + name;
  if (!skipped.empty()) table.add({"left out", skipped});
  table.add({"run", stats.run_id + ", " + format_seconds(stats.wall_seconds)});
  context.console.out(table.text(0));
}

int run_sync(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  Console& console = context.console;
  if (arguments.has("eos") && arguments.has("no-eos"))
    return misuse(context, "--eos and --no-eos exclude each other");
  auto document = sources_of(context);
  if (!document.ok()) return fail(context, document.error());
  apply_flags(arguments, document->sources);
  const EosChoice eos = arguments.has("no-eos")                              ? EosChoice::never
                        : arguments.has("eos") || arguments.has("eos-token") ? EosChoice::always
                                                                             : EosChoice::if_known;
  auto recipe = section_recipe(tokenizer_path(context, arguments.text("tokenizer").value()),
                               arguments.text("pattern").value_or(""), eos, arguments.text("eos-token"),
                               [&](const path& file) { return load_tokenizer_file(context, file); });
  if (!recipe.ok()) return fail(context, recipe.error());
  SyncOptions options;
  options.sequence_len =
      arguments.count("sequence-len").value_or(document->sequence_len.value_or(kDefaultSequenceLen));
  options.use_default_excludes = !arguments.has("no-default-excludes");
  options.use_ignore_files = arguments.has("gitignore");
  options.rehash = arguments.has("rehash");
  options.use_cache = !arguments.has("no-cache") && document->cache_enabled.value_or(true);
  options.threads = static_cast<unsigned>(std::min<uint64_t>(arguments.count("threads").value_or(0), 256));
  options.own_directory = context.settings.store();
  options.on_notice = [&console](const std::string& notice) { console.warn(notice); };

  std::shared_ptr<Store> store;
  if (options.use_cache) {
    StoreOptions store_options = context.settings.store_options();
    if (!store_options.max_bytes_by_kind.contains(kSectionsKind))
      options.max_bytes = document->cache_max_bytes.value_or(0);
    store_options.on_notice = [&console](const Notice& notice) {
      console.warn(std::string(name_of(notice.code)) + ": " + notice.message);
    };
    auto opened = open_store(context.settings.store(), std::move(store_options));
    if (!opened.ok()) return fail(context, opened.error());
    store = std::move(*opened);
  } else {
    store = make_memory_store(1);
  }
  const SectionCache cache(store, options.use_cache ? context.settings.store() : path(), std::move(*recipe));
  const auto run = cache.sync(document->sources, options, console.watch());
  console.end_progress();
  if (!run.ok()) return fail(context, run.error());
  if (run->stats().total_sections == 0 && arguments.has("include"))
    console.note("no file matched; *.py matches in the top directory only, **/*.py everywhere");
  if (console.is_json)
    sync_json(context, *run, options.use_cache);
  else if (console.is_quiet)
    console.out(run->stats().run_id + "\n");
  else
    sync_words(context, *run);
  return run->stats().failed > 0 ? kExitGaps : kExitFine;
}

// ---------------------------------------------------------------------------------------------- show, prune, clear

struct Target {
  SectionDocument document;
  std::vector<path> roots;  // Empty: the whole store.
};

Result<Target> target_of(CommandContext& context) {
  Target target;
  LMEMO_ASSIGN(target.document, sources_of(context));
  for (const SectionSource& source : target.document.sources) {
    std::error_code error;
    path root = std::filesystem::weakly_canonical(source.path, error);
    target.roots.push_back(error ? source.path : std::move(root));
  }
  return target;
}

int run_show(CommandContext& context) {
  Console& console = context.console;
  const auto target = target_of(context);
  if (!target.ok()) return fail(context, target.error());
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  const path directory = context.settings.store();
  const auto inventory = take_inventory(**store, directory, target->roots);
  if (!inventory.ok()) return fail(context, inventory.error());
  RunFilter filter{.face = "sections", .limit = 1};
  for (const path& root : target->roots) filter.source += (filter.source.empty() ? "" : " ") + root.string();
  const auto runs = read_runs(directory / "metrics.db", filter);
  const RunRecord* last = runs.ok() && !runs->empty() ? &runs->front() : nullptr;
  for (const path& root : target->roots)
    if (std::error_code error; !last && inventory->all.entries == 0 && !std::filesystem::exists(root, error))
      return fail(context,
                  {ErrorCode::io_error, "no source at " + root.string() +
                                            ": it is not there, and none was ever synced from there; "
                                            "`lmemo sections show` tells of all"});
  const double rate = last && last->total_sections > 0
                          ? static_cast<double>(last->cache_hits) / static_cast<double>(last->total_sections)
                          : 0;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("path", directory.string());
    json.member("entry_count", inventory->all.entries);
    json.member("bytes", inventory->all.bytes);
    json.member("orphans", inventory->orphans.entries);
    json.member("orphan_bytes", inventory->orphans.bytes);
    if (last) {
      json.member("last_run_hit_rate", rate);
      json.member("last_run_id", last->run_id);
    } else {
      json.member_null("last_run_hit_rate");
      json.member_null("last_run_id");
    }
    json.begin_array("by_tokenizer");
    for (const auto& [tokenizer, total] : inventory->by_tokenizer) {
      json.begin_object();
      json.member("tokenizer", tokenizer);
      const auto name = inventory->tokenizer_names.find(tokenizer);
      if (name == inventory->tokenizer_names.end())
        json.member_null("name");
      else
        json.member("name", name->second);
      json.member("entry_count", total.entries);
      json.member("bytes", total.bytes);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    console.out(json);
    return kExitFine;
  }
  if (console.is_quiet) {
    console.out(directory.string() + "\n");
    return kExitFine;
  }
  std::string name = target->document.id;
  if (name.empty() && !context.arguments.positionals().empty())
    name = context.arguments.positionals().front();
  console.out("Sections" + (name.empty() ? "" : " of " + printable(name)) + "  " +
              printable(directory.string()) + "\n");
  TextTable table({Align::left, Align::left});
  table.add({"entries", format_count(inventory->all.entries)});
  table.add({"size", format_byte_count(inventory->all.bytes)});
  if (inventory->orphans.entries > 0)
    table.add({"orphans", format_count(inventory->orphans.entries) + ", " +
                              format_byte_count(inventory->orphans.bytes) +
                              " in the whole store; they go first when room is needed"});
  table.add({"last run", last ? percent(rate) + " hits (" + std::to_string(last->cache_hits) + "/" +
                                    std::to_string(last->total_sections) + ")"
                              : "none recorded"});
  if (inventory->by_tokenizer.size() > 1)
    for (const auto& [tokenizer, total] : inventory->by_tokenizer)
      table.add(
          {tokenizer.substr(0, 12), format_count(total.entries) + ", " + format_byte_count(total.bytes)});
  console.out(table.text(2));
  return kExitFine;
}

int remove_where(CommandContext& context, const SectionFilter& goes,
                 const std::function<void()>& afterwards) {
  return remove_with_consent(
      context, [&](Store& store) { return preview_matching(context, store, {kSectionsKind, {}}, goes); },
      [&](Store& store) -> Result<RemovalReport> {
        auto report = remove_sections(store, goes, context.console.watch());
        if (report.ok()) afterwards();
        return report;
      });
}

int run_prune(CommandContext& context) {
  const auto target = target_of(context);
  if (!target.ok()) return fail(context, target.error());
  const double seconds =
      context.arguments.seconds("older-than")
          .value_or(static_cast<double>(target->document.prune_older_than_days.value_or(kDefaultPruneDays)) *
                    86400);
  const int64_t before_ns = system_clock().now_ns() - static_cast<int64_t>(seconds * 1e9);
  return remove_where(context, sections_of(context.settings.store(), target->roots, before_ns), [] {});
}

int run_clear(CommandContext& context) {
  const auto target = target_of(context);
  if (!target.ok()) return fail(context, target.error());
  const path directory = context.settings.store();
  return remove_where(context, sections_of(directory, target->roots),
                      [&] { forget_roots(directory, target->roots); });
}

PositionalSpec source_positional(bool is_required) {
  return {.name = "PATH",
          .help = "a directory, a file, or a .dlm document that names sources",
          .type = ValueType::file,
          .is_required = is_required,
          .is_repeated = true};
}

CommandSpec sync_command() {
  CommandSpec sync;
  sync.name = "sync";
  sync.summary = "tokenise what is new or edited in source trees";
  sync.details =
      "Files whose stamp did not change since the last sync are not opened; those whose content is stored "
      "are not tokenised. Binary files and "
      "files that are not UTF-8 are counted and left out.\n"
      "A .dlm document gives sources, limits and settings in its frontmatter; flags win. With --quiet: the "
      "id of the run.";
  sync.positionals = {source_positional(true)};
  sync.options = {tokenizer_option(),
                  {.name = "sequence-len",
                   .type = ValueType::count,
                   .value_name = "N",
                   .help = "cut rows to so many tokens; 0: not at all",
                   .default_text = "2048"},
                  {.name = "include",
                   .type = ValueType::text,
                   .value_name = "GLOB",
                   .help = "only files like this, such as **/*.py; may be repeated"},
                  {.name = "exclude",
                   .type = ValueType::text,
                   .value_name = "GLOB",
                   .help = "no files or directories like this; may be repeated"},
                  {.name = "no-default-excludes",
                   .help = "also version control, environments, build output, locks, archives, keys"},
                  {.name = "gitignore", .help = "leave out what .gitignore files name"},
                  {.name = "max-files",
                   .type = ValueType::count,
                   .value_name = "N",
                   .help = "the first so many of a source, by path"},
                  {.name = "max-bytes-per-file",
                   .type = ValueType::byte_count,
                   .value_name = "SIZE",
                   .help = "leave out larger files"},
                  {.name = "eos",
                   .help = "end every section with the tokenizer's eos_token; the default where it is known"},
                  {.name = "no-eos", .help = "do not"},
                  {.name = "eos-token",
                   .type = ValueType::text,
                   .value_name = "TEXT",
                   .help = "the text to end sections with"},
                  {.name = "rehash", .help = "read every file, whatever its stamp says"},
                  {.name = "no-cache", .help = "neither read nor write the store"},
                  {.name = "threads",
                   .type = ValueType::count,
                   .value_name = "N",
                   .help = "so many threads",
                   .default_text = "one per core"},
                  pattern_option()};
  sync.examples = {
      {"lmemo sections sync ~/src/project -t models/llama --include '**/*.py'",
       "Cold the first time, a walk the second."},
      {"lmemo sections sync train.dlm -t models/llama --json", "What the document names, for programs."}};
  sync.exit_meanings = {{kExitGaps, "a file could not be read or tokenised"}};
  sync.run = run_sync;
  return sync;
}

}  // namespace

std::vector<CommandSpec> sections_commands() {
  CommandSpec show;
  show.name = "show";
  show.summary = "show how much is stored of source trees, and how the last run did";
  show.details = "Without PATH: of the whole store. With --quiet: the store's path.";
  show.positionals = {source_positional(false)};
  show.examples = {{"lmemo sections show train.dlm", "Entries, size, hits of the last run."}};
  show.run = run_show;

  CommandSpec prune =
      removing_command("prune", "remove sections that no run has used for long",
                       {{.name = "older-than",
                         .type = ValueType::duration,
                         .value_name = "AGE",
                         .help = "not used for so long; else the document's prune_older_than_days",
                         .default_text = "90d"}},
                       {{"lmemo sections prune --older-than 30d", "Of all trees."}}, run_prune);
  prune.positionals = {source_positional(false)};
  CommandSpec clear = removing_command(
      "clear", "remove the sections of a source tree, or all",
      {{.name = "force", .short_name = 'f', .help = "the same as --yes"}},
      {{"lmemo sections clear train.dlm", "What other trees use as well stays."}}, run_clear);
  clear.positionals = {source_positional(false)};

  CommandSpec sections;
  sections.name = "sections";
  sections.summary = "keep the tokens of source trees: sync, show, prune, clear";
  sections.subcommands = {sync_command(), show, prune, clear};
  sections.examples = {{"lmemo sections sync . -t models/llama", "Tokenise what changed."}};
  return {sections};
}

}  // namespace lmemo::cli
