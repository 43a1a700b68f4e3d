#include "cli/demo/demo_steps.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/units.h"

namespace lmemo::cli {
namespace {

using nlohmann::json;
using std::filesystem::path;

constexpr uint64_t kMaxTextBytes = 64 << 20;  // Enough to see.

std::string times_faster(double slow, double fast) {
  return format_fixed(slow / std::max(fast, 1e-9), slow < 10 * fast ? 1 : 0) + " × faster";
}

Result<std::string> read_text(const path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.is_open() || stream.bad()) return Error{ErrorCode::io_error, "cannot read " + file.string()};
  return text;
}

Status write_text(const path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) return Error{ErrorCode::io_error, "cannot write " + file.string()};
  return {};
}

// The corpus once more, with one sentence added to its first file.
Status copy_with_an_edit(const DemoCorpus& corpus, const path& to) {
  for (const path& file : corpus.files) {
    LMEMO_ASSIGN(std::string text, read_text(file));
    if (file == corpus.files.front())
      text += "\nThis sentence was added by the demo, and nothing else was changed.\n";
    const path copy = to / file.lexically_relative(corpus.directory);
    std::error_code error;
    std::filesystem::create_directories(copy.parent_path(), error);
    LMEMO_TRY(write_text(copy, text));
  }
  return {};
}

uint64_t files_in(const path& directory) {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator next(directory, error), end; !error && next != end;
       next.increment(error))
    ++count;
  return count;
}

CachedModelRuns cached_runs_of(const json& answer) {
  return {answer.value("asked", uint64_t{0}), answer.value("cold_passes", uint64_t{0}),
          answer.value("warm_passes", uint64_t{0}), answer.value("cold_seconds", 0.0),
          answer.value("warm_seconds", 0.0)};
}

void tell_runs(DemoStage& stage, const CachedModelRuns& runs) {
  stage.line("cold", format_count(runs.cold_passes) + " forward passes", runs.cold_seconds, "");
  stage.line("warm", format_count(runs.warm_passes) + " forward passes", runs.warm_seconds,
             times_faster(runs.cold_seconds, runs.warm_seconds) + ", from the store");
}

}  // namespace

Result<DemoCorpus> list_demo_corpus(const path& directory) {
  DemoCorpus corpus{directory, {}, 0};
  std::error_code error;
  std::filesystem::recursive_directory_iterator next(directory, error), end;
  if (error)
    return Error{ErrorCode::invalid_argument, "cannot read the directory " + directory.string() + ": " +
                                                  error.message() + "; name another with --corpus"};
  for (; next != end && !error; next.increment(error)) {
    std::error_code ignored;
    const bool is_hidden = next->path().filename().string().starts_with('.');
    if (is_hidden && next->is_directory(ignored)) next.disable_recursion_pending();
    if (is_hidden || !next->is_regular_file(ignored) || next->is_symlink(ignored)) continue;
    corpus.files.push_back(next->path());
    corpus.text_bytes += next->file_size(ignored);
  }
  std::sort(corpus.files.begin(), corpus.files.end());
  if (corpus.text_bytes == 0 || corpus.text_bytes > kMaxTextBytes)
    return Error{ErrorCode::invalid_argument,
                 directory.string() + " holds " + format_byte_count(corpus.text_bytes) +
                     " of text; the demo takes up to " + format_byte_count(kMaxTextBytes) +
                     "; name another directory with --corpus"};
  return corpus;
}

Status write_demo_documents(const DemoCorpus& corpus, const path& file) {
  std::string lines;
  for (const path& text_file : corpus.files) {
    LMEMO_ASSIGN(const std::string text, read_text(text_file));
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find("\n\n", begin), text.size());
      if (end > begin)
        lines += json{{"text", text.substr(begin, end - begin)}}.dump(-1, ' ', false,
                                                                      json::error_handler_t::replace) +
                 "\n";
      begin = end + 1;
    }
  }
  return write_text(file, lines);
}

Result<SectionsStep> show_sections(DemoStage& stage, const DemoCorpus& corpus, const std::string& tokenizer) {
  stage.heading("sections", "the tokens of every file of a tree");
  stage.command("sections sync " + corpus.directory.filename().string() + " --tokenizer " +
                path(tokenizer).filename().string());
  const auto sync = [&](const path& tree) {
    return stage.run(
        {"sections", "sync", tree.string(), "--tokenizer", tokenizer, "--sequence-len", "1048576"});
  };
  SectionsStep step;
  LMEMO_ASSIGN(const json cold, sync(corpus.directory));
  step.sections = cold.value("total_sections", uint64_t{0});
  step.tokens = cold.value("total_tokens", uint64_t{0});
  step.cold_seconds = cold.value("wall_seconds", 0.0);
  stage.line("cold", format_count(cold.value("cache_misses", uint64_t{0})) + " files tokenised",
             step.cold_seconds, format_count(step.tokens) + " tokens");

  LMEMO_ASSIGN(const json warm, sync(corpus.directory));
  step.warm_hits = warm.value("cache_hits", uint64_t{0});
  step.warm_seconds = warm.value("wall_seconds", 0.0);
  stage.line("warm", format_count(step.warm_hits) + " hits", step.warm_seconds,
             times_faster(step.cold_seconds, step.warm_seconds) + ", " +
                 format_count(warm.value("files_read", uint64_t{0})) + " files read");

  LMEMO_TRY(copy_with_an_edit(corpus, stage.place("edited")));
  LMEMO_ASSIGN(const json edited, sync(stage.place("edited")));
  step.edited_hits = edited.value("cache_hits", uint64_t{0});
  step.edited_misses = edited.value("cache_misses", uint64_t{0});
  step.edited_seconds = edited.value("wall_seconds", 0.0);
  stage.line("edited",
             format_count(step.edited_hits) + " hits, " + format_count(step.edited_misses) + " tokenised",
             step.edited_seconds, "a copy of the tree, one sentence added to one file");
  return step;
}

Result<ChunksStep> show_chunks(DemoStage& stage, const std::string& documents, const std::string& tokenizer) {
  stage.heading("chunks", "packed, compressed, checksummed rows for training");
  stage.command("chunks build documents.jsonl --tokenizer " + path(tokenizer).filename().string() +
                " --output chunks");
  const path directory = stage.place("chunks");
  const std::string set = directory.string();
  // Small chunks and much compression, so that there is a middle in which to kill.
  const std::vector<std::string> build = {
      "chunks",  "build", documents,           "--tokenizer", tokenizer,   "--output", set,
      "--level", "max",   "--chunk-sequences", "32",          "--workers", "1"};
  constexpr uint64_t kChunksBeforeTheKill = 6;
  constexpr int kAttempts = 3;
  ChunksStep step;
  for (int attempt = 0; attempt < kAttempts && !step.was_killed; ++attempt) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    LMEMO_ASSIGN(step.was_killed, stage.run_and_kill(build, [&] {
      return files_in(directory / "chunks") >= kChunksBeforeTheKill;
    }));
  }
  LMEMO_ASSIGN(const json after_kill, stage.run({"chunks", "show", set}));
  step.missing_after_kill = after_kill.value("missing", json::array()).size();
  step.chunks = after_kill.value("total_chunks", uint64_t{0});
  stage.say(step.was_killed
                ? "  killed   with kill -9 when " + format_count(step.chunks - step.missing_after_kill) +
                      " of " + format_count(step.chunks) + " chunks were done"
                : "  built    before it could be killed");

  LMEMO_ASSIGN(const json filled, stage.run({"chunks", "fill", set}));
  step.filled = filled.value("built", uint64_t{0});
  step.fill_seconds = filled.value("seconds", 0.0);
  stage.line("filled", format_count(step.filled) + " chunks, the missing ones", step.fill_seconds, "");

  LMEMO_ASSIGN(const json verified, stage.run({"chunks", "verify", set}));
  step.rows = verified.value("total_sequences", uint64_t{0});
  step.tokens = verified.value("total_tokens", uint64_t{0});
  step.tokens_in = verified.value("tokens_in", uint64_t{0});
  step.bytes = verified.value("bytes", uint64_t{0});
  step.utilization = verified.value("utilization", 0.0);
  stage.say("  verified " + format_count(verified.value("checked", uint64_t{0})) + " chunks sound, " +
            format_count(step.tokens) + " of " + format_count(step.tokens_in) + " tokens in rows, " +
            format_fixed(step.utilization * 100, 1) + " % filled");
  return step;
}

Result<DatasetStep> show_dataset(DemoStage& stage, const std::string& documents,
                                 const std::string& tokenizer) {
  stage.heading("dataset", "a train/eval set that datasets.load_from_disk opens");
  stage.command("dataset build --train-file documents.jsonl --eval-split 0.1 --tokenizer " +
                path(tokenizer).filename().string() + " --output-dir dataset");
  const auto build = [&] {
    return stage.run({"dataset", "build", "--train-file", documents, "--eval-split", "0.1", "--tokenizer",
                      tokenizer, "--output-dir", stage.place("dataset").string()});
  };
  DatasetStep step;
  LMEMO_ASSIGN(const json cold, build());
  step.train_rows = cold.value("train_size", uint64_t{0});
  step.eval_rows = cold.value("eval_size", uint64_t{0});
  step.tokens = cold.value("train_tokens", uint64_t{0}) + cold.value("eval_tokens", uint64_t{0});
  step.cold_seconds = cold.value("wall_seconds", 0.0);
  stage.line("cold", format_count(cold.value("rows_tokenised", uint64_t{0})) + " rows tokenised",
             step.cold_seconds,
             format_count(step.train_rows) + " to train, " + format_count(step.eval_rows) + " to evaluate");
  LMEMO_ASSIGN(const json warm, build());
  step.warm_was_built = warm.value("built", true);
  step.warm_seconds = warm.value("wall_seconds", 0.0);
  stage.line("warm", "checked and opened", step.warm_seconds,
             times_faster(step.cold_seconds, step.warm_seconds));
  return step;
}

Result<std::optional<ModelsStep>> show_models(DemoStage& stage, const std::string& python,
                                              const std::string& documents, const std::string& tokenizer) {
  if (python.empty()) {
    stage.heading(
        "models",
        "forward and activation caches are in the Python package: pip install 'lmemo[hf]', then lmemo demo");
    return std::optional<ModelsStep>();
  }
  LMEMO_ASSIGN(
      const std::string output,
      stage.run_program({python, "-m", "lmemo._demo", stage.place("store").string(), documents, tokenizer}));
  const json answer = json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    return Error{ErrorCode::io_error, "python -m lmemo._demo printed no JSON object: " + output};
  ModelsStep step;
  for (const json& name : answer.value("missing", json::array()))
    if (name.is_string()) step.missing.push_back(name.get<std::string>());
  if (!step.missing.empty()) {
    std::string names;
    for (const std::string& name : step.missing) names += (names.empty() ? "" : ", ") + name;
    stage.heading("models", "forward and activation caches need " + names + ": pip install 'lmemo[hf]'");
    return std::optional(step);
  }
  step.model = answer.value("model", "");
  step.forward = cached_runs_of(answer.value("forward", json::object()));
  step.activations = cached_runs_of(answer.value("activations", json::object()));
  stage.heading("forward", "next-token distributions of " + format_count(step.forward.asked) + " prompts, " +
                               step.model);
  tell_runs(stage, step.forward);
  stage.heading("activations", "every layer for the same prompts");
  tell_runs(stage, step.activations);
  return std::optional(step);
}

}  // namespace lmemo::cli
