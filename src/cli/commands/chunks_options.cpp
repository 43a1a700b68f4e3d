// What `lmemo chunks` can be told, by options and by [chunks] of lmemo.toml, and how it shows progress.
#include <algorithm>
#include <map>
#include <memory>

#include "base/near_name.h"
#include "base/tick_clock.h"
#include "base/units.h"
#include "cli/commands/chunks_support.h"
#include "cli/tokenizer_argument.h"

namespace lmemo::cli {
namespace {

std::string setting_named(std::string option) {
  std::replace(option.begin(), option.end(), '-', '_');
  return option;
}

Error bad_option(const std::string& name, const std::string& found, const std::string& expected) {
  return {ErrorCode::invalid_argument, "--" + name + ": found \"" + found + "\"; expected " + expected};
}

std::string one_of(const std::vector<std::string>& choices) {
  std::string words;
  for (const std::string& word : choices) words += (words.empty() ? "one of " : ", ") + word;
  return words;
}

Result<std::string> choice(const CommandContext& context, const std::string& name,
                           const std::string& otherwise, const std::vector<std::string>& choices) {
  const std::string text = chunks_option(context, name).value_or(otherwise);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  return bad_option(name, text, one_of(choices));
}

// The id that stands at the start or the end of documents: as the model's directory says, or by its usual names.
Result<uint32_t> special_token(const Path& tokenizer_path, const Tokenizer& tokenizer,
                               const std::string& role) {
  std::vector<std::string> names;
  if (std::filesystem::is_directory(tokenizer_path)) {
    LMEMO_ASSIGN(const ModelSettings settings, ModelSettings::read(tokenizer_path));
    for (const auto& [key, token] : settings.special_tokens)
      if (key == role + "_token") names.push_back(token);
  }
  const std::vector<std::string> usual =
      role == "eos" ? std::vector<std::string>{"<|endoftext|>",       "</s>", "<|end_of_text|>", "<eos>",
                                               "<|end▁of▁sentence|>", "[SEP]"}
                    : std::vector<std::string>{"<|begin_of_text|>",     "<s>",           "<bos>",
                                               "<|begin▁of▁sentence|>", "<|endoftext|>", "[CLS]"};
  if (names.empty()) names = usual;
  for (const std::string& name : names)
    if (const auto id = tokenizer.token_to_id(name)) return *id;
  return Error{ErrorCode::invalid_argument,
               "--add-" + role + ": the tokenizer names no " + role +
                   " token; name a model's directory with a tokenizer_config.json"};
}

std::string name_of_tokenizer(const Path& path) {
  const Path named = path.filename() == "tokenizer.json" ? path.parent_path() : path;
  return named.filename().empty() ? named.parent_path().filename().string() : named.filename().string();
}

// How fast a phase goes, for those that do not tell it themselves.
class PhaseMeter {
 public:
  struct Pace {
    double per_second = 0, seconds_left = 0;
  };
  Pace pace_of(const Progress& progress) {
    const int64_t now = monotonic_ns();
    if (phase_ != progress.phase || progress.done < first_done_) {
      phase_ = progress.phase;
      start_ns_ = now;
      first_done_ = progress.done;
    }
    const double seconds = static_cast<double>(now - start_ns_) * 1e-9;
    if (seconds < 0.2 || progress.done == first_done_) return {};
    const double rate = static_cast<double>(progress.done - first_done_) / seconds;
    return {rate,
            progress.total > progress.done ? static_cast<double>(progress.total - progress.done) / rate : 0};
  }
  std::string in_words(const Progress& progress) {
    const Pace pace = pace_of(progress);
    if (pace.per_second <= 0) return "";
    const auto rate = static_cast<uint64_t>(pace.per_second);
    return (progress.unit == "bytes" ? format_byte_count(rate) : format_count(rate)) + "/s, " +
           format_seconds(pace.seconds_left) + " left";
  }

 private:
  std::string phase_;
  int64_t start_ns_ = 0;
  uint64_t first_done_ = 0;
};

std::string json_line_of(const Progress& progress, PhaseMeter& meter) {
  JsonWriter json;
  json.begin_object();
  json.member("phase", progress.phase);
  json.member("done", progress.done);
  json.member("total", progress.total);
  json.member("unit", progress.unit);
  if (progress.figures.empty()) {
    const PhaseMeter::Pace pace = meter.pace_of(progress);
    json.member(std::string(progress.unit) + "_per_second", pace.per_second);
    json.member("seconds_left", pace.seconds_left);
  }
  for (const ProgressFigure& figure : progress.figures) json.member(figure.name, figure.value);
  json.end_object();
  std::string line = json.text();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

PositionalSpec chunks_inputs(bool is_required) {
  return {.name = "INPUT",
          .help =
              "JSON lines (plain, .gz, .zst), texts, directories, globs; with Python also Parquet, Arrow, "
              "hf://, https://",
          .type = ValueType::file,
          .is_required = is_required,
          .is_repeated = true};
}

std::optional<std::string> chunks_option(const CommandContext& context, const std::string& name) {
  if (const auto given = context.arguments.text(name)) return given;
  const Setting* const setting = context.settings.find("chunks." + setting_named(name));
  return setting && !setting->text.empty() ? std::optional(setting->text) : std::nullopt;
}

Result<uint64_t> chunks_count(const CommandContext& context, const std::string& name, uint64_t otherwise) {
  const auto text = chunks_option(context, name);
  if (!text) return otherwise;
  const auto count = parse_count(*text);
  if (!count.ok()) return bad_option(name, *text, "a whole number");
  return *count;
}

bool chunks_flag(const CommandContext& context, const std::string& name) {
  if (context.arguments.has(name)) return true;
  return chunks_option(context, name) == "true";
}

Watch chunks_watch(CommandContext& context) {
  Watch watch = context.console.watch();
  const auto meter = std::make_shared<PhaseMeter>();
  if (chunks_option(context, "progress") == "json") {
    watch.on_progress =
        [&context, meter,
         last = std::make_shared<std::map<std::string, int64_t, std::less<>>>()](const Progress& progress) {
          const int64_t now = monotonic_ns();
          int64_t& last_ns = (*last)[std::string(progress.phase)];
          if (last_ns != 0 && now - last_ns < 500'000'000 && progress.done != progress.total) return;
          last_ns = now;
          context.environment.write_error(json_line_of(progress, *meter) + "\n");
        };
  } else if (watch.on_progress) {
    watch.on_progress = [meter, show = watch.on_progress](const Progress& progress) {
      Progress timed = progress;
      const std::string note = progress.note.empty() ? meter->in_words(progress) : "";
      if (!note.empty()) timed.note = note;
      show(timed);
    };
  }
  return watch;
}

std::vector<OptionSpec> chunks_plan_options() {
  return {{.name = "tokenizer",
           .short_name = 't',
           .type = ValueType::file,
           .value_name = "TOKENIZER",
           .help = "a tokenizer.json, or a model's directory"},
          {.name = "sequence-length",
           .type = ValueType::count,
           .value_name = "N",
           .help = "tokens in a row",
           .default_text = "512"},
          {.name = "chunk-sequences",
           .type = ValueType::count,
           .value_name = "N",
           .help = "rows wanted in a chunk; it is cut between documents",
           .default_text = "8000"},
          {.name = "strategy",
           .type = ValueType::choice,
           .value_name = "HOW",
           .help = "how documents share rows",
           .default_text = "best_fit",
           .choices = {"best_fit", "greedy", "concat"}},
          {.name = "compression",
           .type = ValueType::choice,
           .value_name = "WHICH",
           .help = "of the rows",
           .default_text = "zstd",
           .choices = {"lz4", "zstd", "none"}},
          {.name = "level",
           .type = ValueType::choice,
           .value_name = "LEVEL",
           .help = "how hard to compress",
           .default_text = "default",
           .choices = {"fast", "default", "max"}},
          {.name = "text-field",
           .type = ValueType::text,
           .value_name = "NAME",
           .help = "where a JSON line has its text",
           .default_text = "text"},
          {.name = "add-bos", .help = "put the token for a beginning before each document"},
          {.name = "add-eos", .help = "put the token for an end behind each document"},
          {.name = "min-tokens",
           .type = ValueType::count,
           .value_name = "N",
           .help = "leave shorter documents out",
           .default_text = "0"},
          {.name = "dedup", .help = "leave out documents whose text was there before"},
          {.name = "limit-documents",
           .type = ValueType::count,
           .value_name = "N",
           .help = "plan the first N documents only"},
          {.name = "progress",
           .type = ValueType::choice,
           .value_name = "HOW",
           .help = "how to show progress",
           .default_text = "auto",
           .choices = {"auto", "json"}},
          {.name = "dry-run", .help = "tell what would be done; write nothing"}};
}

std::vector<OptionSpec> chunks_build_options() {
  return {{.name = "workers",
           .type = ValueType::count,
           .value_name = "N",
           .help = "threads",
           .default_text = "one per core"},
          {.name = "memory-limit",
           .type = ValueType::byte_count,
           .value_name = "SIZE",
           .help = "what all workers together may take",
           .default_text = "16GB"},
          {.name = "start-chunk",
           .type = ValueType::count,
           .value_name = "A",
           .help = "the first chunk to build",
           .default_text = "0"},
          {.name = "end-chunk",
           .type = ValueType::count,
           .value_name = "B",
           .help = "the chunk before which to stop"},
          {.name = "shard",
           .type = ValueType::text,
           .value_name = "I/N",
           .help = "every Nth chunk only, from the Ith on"},
          {.name = "strict", .help = "a document that cannot be read is an error"}};
}

OptionSpec chunks_output_option() {
  return {.name = "output",
          .short_name = 'o',
          .type = ValueType::directory,
          .value_name = "DIR",
          .help = "the directory of the chunks"};
}

std::vector<OptionSpec> chunks_mode_options() {
  return {{.name = "mode",
           .type = ValueType::choice,
           .value_name = "MODE",
           .help = "inverse: find the gaps and build just them, as chunks fill",
           .default_text = "normal",
           .choices = {"normal", "inverse"}},
          {.name = "resume", .help = "go on where a build stopped: the same"}};
}

Status check_chunks_settings(const Settings& settings) {
  std::map<std::string, OptionSpec, std::less<>> known;
  std::vector<std::string> names;
  for (const auto& options : {std::vector{chunks_output_option()}, chunks_plan_options(),
                              chunks_build_options(), chunks_mode_options()})
    for (const OptionSpec& option : options) {
      names.push_back(setting_named(option.name));
      known.emplace(names.back(), option);
    }
  for (const Setting& setting : settings.all()) {
    if (!setting.key.starts_with("chunks.")) continue;
    const auto error = [&](const std::string& what) {
      return Error{ErrorCode::invalid_argument, setting.origin + ": " + what};
    };
    const std::string name = setting.key.substr(7);
    const auto option = known.find(name);
    if (option == known.end())
      return error("unknown setting \"" + setting.key + "\"." + did_you_mean(name, names));
    const bool is_flag = option->second.type == ValueType::none;
    const std::vector<std::string> choices =
        is_flag ? std::vector<std::string>{"true", "false"} : option->second.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), setting.text) == choices.end())
      return error(setting.key + ": found \"" + setting.text + "\"; expected " + one_of(choices));
  }
  return {};
}

Result<WantedChunks> wanted_chunks(CommandContext& context) {
  WantedChunks wanted;
  const auto name = chunks_option(context, "tokenizer");
  if (!name)
    return Error{ErrorCode::invalid_argument,
                 "--tokenizer is missing: a tokenizer.json, or a model's directory"};
  LMEMO_ASSIGN(wanted.tokenizer, load_tokenizer(context, *name));
  const Path path = tokenizer_path(context, *name);
  ChunkParameters& parameters = wanted.plan.parameters;
  wanted.plan.tokenizer_path = std::filesystem::absolute(path).lexically_normal().string();
  parameters.tokenizer = wanted.tokenizer->identity();
  parameters.tokenizer_name = name_of_tokenizer(wanted.plan.tokenizer_path);
  const uint64_t id_limit = wanted.tokenizer->id_limit();
  if (id_limit > chunks::kMaxVocabulary)
    return Error{ErrorCode::incompatible, "tokenizer " + *name + " has an id of " +
                                              std::to_string(id_limit - 1) + "; chunks hold ids below " +
                                              std::to_string(chunks::kMaxVocabulary)};
  parameters.vocab_size = static_cast<uint32_t>(id_limit);
  LMEMO_ASSIGN(const uint64_t length, chunks_count(context, "sequence-length", 512));
  if (length < 1 || length > chunks::kMaxSequenceLength)
    return bad_option("sequence-length", std::to_string(length),
                      "1 to " + format_count(chunks::kMaxSequenceLength));
  parameters.sequence_length = static_cast<uint32_t>(length);
  LMEMO_ASSIGN(wanted.plan.chunk_sequences, chunks_count(context, "chunk-sequences", 8000));
  if (wanted.plan.chunk_sequences == 0) return bad_option("chunk-sequences", "0", "at least 1");
  LMEMO_ASSIGN(parameters.strategy,
               choice(context, "strategy", "best_fit", {"best_fit", "greedy", "concat"}));
  LMEMO_ASSIGN(parameters.compression, choice(context, "compression", "zstd", {"lz4", "zstd", "none"}));
  LMEMO_ASSIGN(parameters.level, choice(context, "level", "default", {"fast", "default", "max"}));
  parameters.text_field = chunks_option(context, "text-field").value_or("text");
  LMEMO_ASSIGN(const uint64_t min_tokens, chunks_count(context, "min-tokens", 0));
  parameters.min_tokens = static_cast<uint32_t>(std::min<uint64_t>(min_tokens, UINT32_MAX));
  parameters.deduplicates = chunks_flag(context, "dedup");
  LMEMO_ASSIGN(wanted.plan.limit_documents, chunks_count(context, "limit-documents", 0));
  if (chunks_flag(context, "add-bos")) {
    LMEMO_ASSIGN(parameters.bos, special_token(path, *wanted.tokenizer, "bos"));
  }
  if (chunks_flag(context, "add-eos")) {
    LMEMO_ASSIGN(parameters.eos, special_token(path, *wanted.tokenizer, "eos"));
  }
  return wanted;
}

Result<chunks::BuildOptions> build_options(const CommandContext& context) {
  chunks::BuildOptions options;
  LMEMO_ASSIGN(const uint64_t workers, chunks_count(context, "workers", 0));
  options.workers = static_cast<unsigned>(std::min<uint64_t>(workers, 1024));
  LMEMO_ASSIGN(options.memory_limit,
               parse_byte_count(chunks_option(context, "memory-limit").value_or("16GB")));
  options.is_strict = chunks_flag(context, "strict");
  return options;
}

Result<std::vector<uint64_t>> asked_chunks(const CommandContext& context, uint64_t chunk_count) {
  LMEMO_ASSIGN(const uint64_t start, chunks_count(context, "start-chunk", 0));
  LMEMO_ASSIGN(const uint64_t end, chunks_count(context, "end-chunk", UINT64_MAX));
  if (end < start)
    return bad_option("end-chunk", std::to_string(end), "at least --start-chunk, " + std::to_string(start));
  uint64_t index = 0, shards = 1;
  if (const auto shard = chunks_option(context, "shard")) {
    const size_t slash = shard->find('/');
    const auto first = parse_count(shard->substr(0, slash));
    const auto second =
        slash == std::string::npos ? Result<uint64_t>(0) : parse_count(shard->substr(slash + 1));
    if (!first.ok() || !second.ok() || *second == 0 || *first > *second)
      return bad_option("shard", *shard, "I/N, for example 0/4");
    // 0/4 to 3/4 or 1/4 to 4/4: both divide all chunks among four.
    shards = *second;
    index = *first % shards;
  }
  std::vector<uint64_t> numbers;
  for (uint64_t number = start; number < std::min(end, chunk_count); ++number)
    if (number % shards == index) numbers.push_back(number);
  return numbers;
}

}  // namespace lmemo::cli
