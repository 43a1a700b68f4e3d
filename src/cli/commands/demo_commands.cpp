// lmemo demo: the same work done cold, warm, and after an edit, in a store of its own that is removed at the end.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/demo_fingerprints.h"

namespace lmemo::cli {
namespace {

using std::filesystem::path;

constexpr uint64_t kMaxTextBytes = 64 << 20;  // Enough to see; the values take twenty times that.

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "lmemo-demo-XXXXXX").string();
    if (!error && mkdtemp(name.data())) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const path& get() const { return path_; }  // Empty if it could not be made.

 private:
  path path_;
};

struct Corpus {
  std::vector<path> files;
  uint64_t text_bytes = 0;
  bool is_cut = false;
};

struct Run {
  std::string name;
  uint64_t computed = 0;
  uint64_t found = 0;
  double seconds = 0;
};

Result<path> corpus_directory(const CommandContext& context) {
  const CliEnvironment& environment = context.environment;
  path directory = context.arguments.text("corpus").value_or("");
  if (directory.empty() && environment.variable)
    directory = environment.variable("LMEMO_CORPUS").value_or("");
  if (directory.empty()) directory = environment.shipped_corpus;
  if (directory.empty())
    return Error{
        ErrorCode::invalid_argument,
        "the texts that come with lmemo were not found beside the program; name a directory of texts: "
        "lmemo demo --corpus DIR"};
  return environment.working_directory / directory;
}

Result<Corpus> list_corpus(const path& directory) {
  Corpus corpus;
  std::error_code error;
  std::filesystem::recursive_directory_iterator next(directory, error), end;
  if (error)
    return Error{ErrorCode::invalid_argument, "cannot read the directory " + directory.string() + ": " +
                                                  error.message() + "; name another with --corpus"};
  for (; next != end && !error; next.increment(error)) {
    std::error_code ignored;
    const bool is_hidden = next->path().filename().string().starts_with('.');
    if (is_hidden && next->is_directory(ignored)) next.disable_recursion_pending();
    if (!is_hidden && next->is_regular_file(ignored) && !next->is_symlink(ignored))
      corpus.files.push_back(next->path());
  }
  std::sort(corpus.files.begin(), corpus.files.end());
  size_t kept = 0;
  for (; kept < corpus.files.size(); ++kept) {
    std::error_code ignored;
    const uint64_t bytes = std::filesystem::file_size(corpus.files[kept], ignored);
    if (corpus.text_bytes + bytes > kMaxTextBytes) break;
    corpus.text_bytes += bytes;
  }
  corpus.is_cut = kept < corpus.files.size();
  corpus.files.resize(kept);
  if (corpus.files.empty())
    return Error{ErrorCode::invalid_argument, "no files of at most " + format_byte_count(kMaxTextBytes) +
                                                  " in " + directory.string() +
                                                  "; name another directory with --corpus"};
  return corpus;
}

Result<std::string> read_text(const path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.is_open() || stream.bad()) return Error{ErrorCode::io_error, "cannot read " + file.string()};
  return text;
}

// This is all that a user of lmemo writes: make a key, find or compute and put.
Status fingerprint_file(Store& store, const path& file, Run& run) {
  LMEMO_ASSIGN(const std::string text, read_text(file));
  LMEMO_ASSIGN(const Key key, fingerprint_key(text));
  if (store.find(key)) {
    ++run.found;
    return {};
  }
  const std::string fingerprints = fingerprints_of(text);
  ++run.computed;
  return store.put(key, bytes_of(fingerprints));
}

Result<Run> run_job(CommandContext& context, const std::string& name, const path& store_directory,
                    const std::vector<path>& files) {
  Run run{name};
  const Watch watch = context.console.watch();
  const int64_t start_ns = system_clock().now_ns();
  // Opened anew each time, as a new process would.
  StoreOptions options;
  options.on_notice = [&console = context.console](const Notice& notice) { console.warn(notice.message); };
  LMEMO_ASSIGN(const std::unique_ptr<Store> store, open_store(store_directory, options));
  for (size_t done = 0; done < files.size(); ++done) {
    if (watch.stopped()) return Error{ErrorCode::interrupted, "in the " + name + " run"};
    LMEMO_TRY(fingerprint_file(*store, files[done], run));
    watch.report({name, done + 1, files.size(), "files"});
  }
  LMEMO_TRY(store->flush());
  run.seconds = static_cast<double>(system_clock().now_ns() - start_ns) / 1e9;
  context.console.end_progress();
  return run;
}

// A copy of the file with one more sentence.
Result<path> edited_copy(const path& file, const path& directory) {
  LMEMO_ASSIGN(std::string text, read_text(file));
  text += "\nThis sentence was added by the demo, and nothing else was changed.\n";
  const path copy = directory / file.filename();
  std::ofstream stream(copy, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) return Error{ErrorCode::io_error, "cannot write " + copy.string()};
  return copy;
}

std::string right_aligned(const std::string& text, size_t columns) {
  return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
}

void tell(CommandContext& context, const Run& run, const std::string& remark) {
  if (context.console.is_json || context.console.is_quiet) return;
  context.console.out(context.console.styled(Style::bold, run.name + std::string(8 - run.name.size(), ' ')) +
                      right_aligned(format_count(run.computed), 5) + " computed " +
                      right_aligned(format_count(run.found), 5) + " found " +
                      right_aligned(format_seconds(run.seconds), 9) + "  " + remark + "\n");
}

void tell_json(CommandContext& context, const Corpus& corpus, const std::vector<Run>& runs, double ratio) {
  JsonWriter json = begin_json(context);
  json.member("files", corpus.files.size());
  json.member("text_bytes", corpus.text_bytes);
  json.begin_array("runs");
  for (const Run& run : runs) {
    json.begin_object();
    json.member("name", run.name);
    json.member("computed", run.computed);
    json.member("found", run.found);
    json.member("seconds", run.seconds);
    json.end_object();
  }
  json.end_array();
  json.member("cold_over_warm", ratio);
  json.end_object();
  context.console.out(json);
}

Result<int> demonstrate(CommandContext& context) {
  Console& console = context.console;
  LMEMO_ASSIGN(const path directory, corpus_directory(context));
  LMEMO_ASSIGN(const Corpus corpus, list_corpus(directory));
  const TemporaryDirectory temporary;
  if (temporary.get().empty())
    return Error{ErrorCode::io_error, "cannot make a temporary directory; set TMPDIR to a writable one"};
  const path store_directory = temporary.get() / "store";
  const bool tells = !console.is_json && !console.is_quiet;
  if (tells)
    console.out(
        "Fingerprints of every 5 to 13 words, as used to keep test questions out of training data:\n" +
        format_count(corpus.files.size()) + (corpus.files.size() == 1 ? " file, " : " files, ") +
        format_byte_count(corpus.text_bytes) + " of text\n\n");
  if (corpus.is_cut)
    console.note("only the first " + format_byte_count(kMaxTextBytes) + " of " + directory.string() +
                 " are used");

  LMEMO_ASSIGN(const Run cold, run_job(context, "cold", store_directory, corpus.files));
  tell(context, cold, "everything is computed and stored");
  LMEMO_ASSIGN(const Run warm, run_job(context, "warm", store_directory, corpus.files));
  const double ratio = cold.seconds / std::max(warm.seconds, 1e-9);
  tell(context, warm, format_fixed(ratio, 0) + " × faster, no window hashed again");

  std::vector<path> files = corpus.files;
  LMEMO_ASSIGN(const path copy, edited_copy(files.front(), temporary.get()));
  files.front() = copy;
  LMEMO_ASSIGN(const Run edited, run_job(context, "edited", store_directory, files));
  tell(context, edited, "one sentence was added to " + printable(files.front().filename().string()));

  if (console.is_json) {
    tell_json(context, corpus, {cold, warm, edited}, ratio);
    return kExitFine;
  }
  if (!tells) return kExitFine;
  console.out("\n" + console.styled(Style::dim, "$ lmemo show --store " + store_directory.string()) + "\n");
  const std::string color = context.settings.color();
  return run_cli({"show", "--store", store_directory.string(), "--color", color}, context.environment);
}

int run_demo(CommandContext& context) {
  const auto exit_code = demonstrate(context);
  return exit_code.ok() ? *exit_code : fail(context, exit_code.error());
}

}  // namespace

std::vector<CommandSpec> demo_commands() {
  CommandSpec demo;
  demo.name = "demo";
  demo.summary = "do the same work cold, warm and after an edit";
  demo.details = "Works in a temporary store that is removed at the end; your own store is not touched.";
  demo.options = {{.name = "corpus",
                   .type = ValueType::directory,
                   .value_name = "DIR",
                   .help = "a directory of texts; else LMEMO_CORPUS",
                   .default_text = "the texts that come with lmemo"}};
  demo.examples = {{"lmemo demo", "On the texts that come with lmemo."},
                   {"lmemo demo --corpus src", "On your own files."}};
  demo.run = run_demo;
  return {demo};
}

}  // namespace lmemo::cli
