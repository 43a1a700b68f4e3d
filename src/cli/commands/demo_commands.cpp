// lmemo demo: every face at work on the texts that come with lmemo, in a store of its own.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/demo/demo_steps.h"
#include "cli/shell_word.h"

namespace lmemo::cli {
namespace {

using std::filesystem::path;

constexpr const char* kMarker = ".lmemo-demo";  // Says that a directory is the demo's own to empty.

// Where the demo works. What it leaves behind: with --output everything, else the report alone; nothing if it failed.
class DemoDirectory {
 public:
  static Result<DemoDirectory> named(const path& directory) {
    std::error_code error;
    if (!std::filesystem::is_empty(directory, error) && !error) {
      if (!std::filesystem::exists(directory / kMarker, error))
        return Error{
            ErrorCode::invalid_argument,
            directory.string() + " is not empty and not of an earlier demo; name another with --output"};
      std::filesystem::remove_all(directory, error);
    }
    std::filesystem::create_directories(directory, error);
    if (error)
      return Error{ErrorCode::io_error,
                   "cannot make the directory " + directory.string() + ": " + error.message()};
    return DemoDirectory(directory, true);
  }
  static Result<DemoDirectory> temporary() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "lmemo-demo-XXXXXX").string();
    if (error || !mkdtemp(name.data()))
      return Error{ErrorCode::io_error, "cannot make a temporary directory; set TMPDIR to a writable one"};
    return DemoDirectory(name, false);
  }
  ~DemoDirectory() {
    std::error_code ignored;
    if (!path_.empty() && !is_done_) std::filesystem::remove_all(path_, ignored);
  }
  DemoDirectory(DemoDirectory&& other) noexcept
      : path_(std::exchange(other.path_, {})), is_kept_(other.is_kept_), is_done_(other.is_done_) {}
  DemoDirectory& operator=(DemoDirectory&&) = delete;

  const path& get() const { return path_; }
  void finish(const path& report) {
    is_done_ = true;
    if (is_kept_) return;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error))
      if (entry.path() != report) std::filesystem::remove_all(entry.path(), error);
  }

 private:
  DemoDirectory(path directory, bool is_kept) : path_(std::move(directory)), is_kept_(is_kept) {
    std::ofstream(path_ / kMarker) << "made by lmemo demo\n";
    std::ofstream(path_ / "lmemo.toml") << "# The demo does not look at your settings.\n";
  }
  path path_;
  bool is_kept_ = false;
  bool is_done_ = false;
};

// An option, else what comes with lmemo.
Result<path> shipped_or(const CommandContext& context, const std::string& option, const char* name) {
  if (const auto given = context.arguments.text(option))
    return context.environment.working_directory / *given;
  const path& shipped = context.environment.shipped_examples;
  if (shipped.empty())
    return Error{ErrorCode::invalid_argument,
                 "the examples that come with lmemo were not found beside the program; name your own: lmemo "
                 "demo --corpus DIR --tokenizer T"};
  return shipped / name;
}

Result<path> corpus_directory(const CommandContext& context) {
  if (!context.arguments.text("corpus") && context.environment.variable)
    if (const auto named = context.environment.variable("LMEMO_CORPUS"))
      return context.environment.working_directory / *named;
  return shipped_or(context, "corpus", "corpus");
}

struct Figures {
  DemoCorpus corpus;
  SectionsStep sections;
  ChunksStep chunks;
  DatasetStep dataset;
  std::optional<ModelsStep> models;
  uint64_t store_bytes = 0;
  std::string report;
};

void add_runs(JsonWriter& json, std::string_view name, const CachedModelRuns& runs) {
  json.begin_object(name);
  json.member("asked", runs.asked);
  json.member("cold_passes", runs.cold_passes);
  json.member("warm_passes", runs.warm_passes);
  json.member("cold_seconds", runs.cold_seconds);
  json.member("warm_seconds", runs.warm_seconds);
  json.end_object();
}

void tell_json(CommandContext& context, const Figures& figures) {
  JsonWriter json = begin_json(context);
  json.member("files", figures.corpus.files.size());
  json.member("text_bytes", figures.corpus.text_bytes);
  json.begin_object("sections");
  json.member("total_sections", figures.sections.sections);
  json.member("tokens", figures.sections.tokens);
  json.member("warm_hits", figures.sections.warm_hits);
  json.member("edited_hits", figures.sections.edited_hits);
  json.member("edited_misses", figures.sections.edited_misses);
  json.member("cold_seconds", figures.sections.cold_seconds);
  json.member("warm_seconds", figures.sections.warm_seconds);
  json.member("edited_seconds", figures.sections.edited_seconds);
  json.end_object();
  json.begin_object("chunks");
  json.member("total_chunks", figures.chunks.chunks);
  json.member("was_killed", figures.chunks.was_killed);
  json.member("missing_after_kill", figures.chunks.missing_after_kill);
  json.member("filled", figures.chunks.filled);
  json.member("rows", figures.chunks.rows);
  json.member("tokens", figures.chunks.tokens);
  json.member("tokens_in", figures.chunks.tokens_in);
  json.member("bytes", figures.chunks.bytes);
  json.member("utilization", figures.chunks.utilization);
  json.member("fill_seconds", figures.chunks.fill_seconds);
  json.end_object();
  json.begin_object("dataset");
  json.member("train_size", figures.dataset.train_rows);
  json.member("eval_size", figures.dataset.eval_rows);
  json.member("tokens", figures.dataset.tokens);
  json.member("warm_was_built", figures.dataset.warm_was_built);
  json.member("cold_seconds", figures.dataset.cold_seconds);
  json.member("warm_seconds", figures.dataset.warm_seconds);
  json.end_object();
  if (figures.models && figures.models->missing.empty()) {
    json.member("model", figures.models->model);
    add_runs(json, "forward", figures.models->forward);
    add_runs(json, "activations", figures.models->activations);
  } else {
    json.member_null("forward");
    json.member_null("activations");
  }
  json.member("store_bytes", figures.store_bytes);
  json.member("report", figures.report);
  json.end_object();
  context.console.out(json);
}

std::string ratio(double slow, double fast) { return format_fixed(slow / std::max(fast, 1e-9), 0) + " ×"; }

void tell_numbers(DemoStage& stage, const Figures& figures) {
  stage.heading("in numbers", "measured in this run");
  std::string faster = "sections " + ratio(figures.sections.cold_seconds, figures.sections.warm_seconds) +
                       ", dataset " + ratio(figures.dataset.cold_seconds, figures.dataset.warm_seconds);
  if (figures.models && figures.models->missing.empty())
    faster += ", forward " +
              ratio(figures.models->forward.cold_seconds, figures.models->forward.warm_seconds) +
              ", activations " +
              ratio(figures.models->activations.cold_seconds, figures.models->activations.warm_seconds);
  stage.say("  warm over cold  " + faster);
  stage.say("  hit rate        " +
            format_fixed(100.0 * static_cast<double>(figures.sections.warm_hits) /
                             static_cast<double>(std::max<uint64_t>(figures.sections.sections, 1)),
                         1) +
            " % unchanged, " +
            format_fixed(100.0 * static_cast<double>(figures.sections.edited_hits) /
                             static_cast<double>(std::max<uint64_t>(
                                 figures.sections.edited_hits + figures.sections.edited_misses, 1)),
                         1) +
            " % after one edit");
  stage.say("  bytes           " + format_byte_count(figures.corpus.text_bytes) + " of text, " +
            format_byte_count(figures.store_bytes) + " in the store, " +
            format_byte_count(figures.chunks.bytes) + " in chunks");
  stage.say("  report          " + figures.report);
}

Result<int> demonstrate(CommandContext& context) {
  LMEMO_ASSIGN(const path corpus_path, corpus_directory(context));
  LMEMO_ASSIGN(const path tokenizer_path, shipped_or(context, "tokenizer", "tokenizer"));
  const std::string tokenizer = tokenizer_path.string();
  Figures figures;
  LMEMO_ASSIGN(figures.corpus, list_demo_corpus(corpus_path));
  const auto output = context.arguments.text("output");
  LMEMO_ASSIGN(DemoDirectory directory,
               output ? DemoDirectory::named(context.environment.working_directory / *output)
                      : DemoDirectory::temporary());
  DemoStage stage(context, directory.get());
  stage.say(format_count(figures.corpus.files.size()) +
            (figures.corpus.files.size() == 1 ? " file, " : " files, ") +
            format_byte_count(figures.corpus.text_bytes) + " of text");

  const path documents_file = stage.place("documents.jsonl");
  LMEMO_TRY(write_demo_documents(figures.corpus, documents_file));
  const std::string documents = documents_file.string();
  LMEMO_ASSIGN(figures.sections, show_sections(stage, figures.corpus, tokenizer));
  LMEMO_ASSIGN(figures.chunks, show_chunks(stage, documents, tokenizer));
  LMEMO_ASSIGN(figures.dataset, show_dataset(stage, documents, tokenizer));
  LMEMO_ASSIGN(figures.models, show_models(stage, context.environment.python, documents, tokenizer));

  LMEMO_ASSIGN(const nlohmann::json shown, stage.run({"show"}));
  figures.store_bytes = shown.value("disk_bytes", uint64_t{0});
  const path report = stage.place("report.html");
  LMEMO_TRY(stage.run({"report", "--chunks", stage.place("chunks").string(), "-o", report.string()}));
  figures.report = report.string();
  directory.finish(report);
  tell_numbers(stage, figures);
  if (output) stage.say("  look around     lmemo show --store " + shell_word(stage.place("store").string()));
  if (context.console.is_json)
    tell_json(context, figures);
  else if (context.console.is_quiet)
    context.console.out(figures.report + "\n");
  return kExitFine;
}

int run_demo(CommandContext& context) {
  const auto exit_code = demonstrate(context);
  return exit_code.ok() ? *exit_code : fail(context, exit_code.error());
}

}  // namespace

std::vector<CommandSpec> demo_commands() {
  CommandSpec demo;
  demo.name = "demo";
  demo.summary = "every face at work, cold and warm, on texts that come with lmemo";
  demo.details =
      "Works in a store of its own; yours is not touched. Without --output only the report is left, in the "
      "temporary "
      "directory. The forward and activation caches need a model, and are shown if torch and transformers "
      "are installed.";
  demo.options = {{.name = "corpus",
                   .type = ValueType::directory,
                   .value_name = "DIR",
                   .help = "a directory of texts; else LMEMO_CORPUS",
                   .default_text = "the texts that come with lmemo"},
                  {.name = "tokenizer",
                   .short_name = 't',
                   .type = ValueType::file,
                   .value_name = "TOKENIZER",
                   .help = "a tokenizer.json, or a model's directory",
                   .default_text = "the one that comes with lmemo"},
                  {.name = "output",
                   .short_name = 'o',
                   .type = ValueType::directory,
                   .value_name = "DIR",
                   .help = "work here and leave everything to look at"}};
  demo.examples = {
      {"lmemo demo", "On the texts that come with lmemo."},
      {"lmemo demo --corpus src --output /tmp/tour", "On your own files, and look around afterwards."}};
  demo.run = run_demo;
  return {demo};
}

}  // namespace lmemo::cli
