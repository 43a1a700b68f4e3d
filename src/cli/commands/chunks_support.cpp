#include "cli/commands/chunks_support.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/tick_clock.h"
#include "base/units.h"
#include "cli/near_name.h"
#include "cli/tokenizer_argument.h"

namespace lmemo::cli {
namespace {

using chunks::Plan;

Error bad_option(const std::string& name, const std::string& found, const std::string& expected) {
  return {ErrorCode::invalid_argument, "--" + name + ": found \"" + found + "\"; expected " + expected};
}

Result<std::string> choice(const CommandContext& context, const std::string& name,
                           const std::string& otherwise, const std::vector<std::string>& choices) {
  const std::string text = chunks_option(context, name).value_or(otherwise);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  std::string words;
  for (const std::string& word : choices) words += (words.empty() ? "" : ", ") + word;
  return bad_option(name, text, "one of " + words);
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

// In which field two sets of parameters differ.
std::optional<std::string> difference(const ChunkParameters& has, const ChunkParameters& wanted) {
  const auto mine = chunks::parameter_fields(has), theirs = chunks::parameter_fields(wanted);
  for (size_t at = 0; at < mine.size(); ++at)
    if (mine[at] != theirs[at])
      return mine[at].name + ": the set has " + mine[at].value.describe() + ", asked for " +
             theirs[at].value.describe();
  return std::nullopt;
}

std::vector<std::string> absolute_inputs(const CommandContext& context,
                                         const std::vector<std::string>& inputs) {
  std::vector<std::string> absolute;
  for (const std::string& input : inputs)
    absolute.push_back((context.environment.working_directory / input).lexically_normal().string());
  return absolute;
}

}  // namespace

std::optional<std::string> chunks_option(const CommandContext& context, const std::string& name) {
  if (const auto given = context.arguments.text(name)) return given;
  std::string key = "chunks." + name;
  std::replace(key.begin(), key.end(), '-', '_');
  const Setting* const setting = context.settings.find(key);
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
  if (context.arguments.text("progress") != "json") return watch;
  watch.on_progress = [&context, last = std::make_shared<int64_t>(0),
                       phase = std::make_shared<std::string>()](const Progress& progress) {
    const int64_t now = monotonic_ns();
    if (now - *last < 500'000'000 && *phase == progress.phase && progress.done != progress.total) return;
    *last = now;
    *phase = progress.phase;
    JsonWriter json;
    json.begin_object();
    json.member("phase", progress.phase);
    json.member("done", progress.done);
    json.member("total", progress.total);
    json.member("unit", progress.unit);
    json.member("note", progress.note);
    json.end_object();
    std::string line = json.text();
    std::replace(line.begin(), line.end(), '\n', ' ');
    context.environment.write_error(line + "\n");
  };
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

static Status check_settings(const Settings& settings) {
  const std::vector<std::string> known = {
      "output",          "tokenizer",  "sequence_length", "chunk_sequences", "strategy",   "compression",
      "level",           "text_field", "add_bos",         "add_eos",         "min_tokens", "dedup",
      "limit_documents", "workers",    "memory_limit",    "strict"};
  for (const Setting& setting : settings.all()) {
    if (!setting.key.starts_with("chunks.")) continue;
    const std::string name = setting.key.substr(7);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Error{ErrorCode::invalid_argument,
                   setting.origin + ": unknown setting \"" + setting.key + "\"." + did_you_mean(name, known)};
  }
  return {};
}

Result<WantedChunks> wanted_chunks(CommandContext& context) {
  LMEMO_TRY(check_settings(context.settings));
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
  parameters.vocab_size = static_cast<uint32_t>(wanted.tokenizer->vocab_size());
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
  // Ids may have gaps: the largest one counts.
  for (const auto& id : {parameters.bos, parameters.eos})
    if (id) parameters.vocab_size = std::max(parameters.vocab_size, *id + 1);
  return wanted;
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_of_plan(CommandContext& context, const Plan& plan) {
  const std::string name = context.arguments.text("tokenizer").value_or(plan.tokenizer_path);
  LMEMO_ASSIGN(auto tokenizer, load_tokenizer(context, name));
  if (tokenizer->identity() != plan.parameters.tokenizer)
    return Error{ErrorCode::incompatible,
                 "tokenizer " + name + " is " + tokenizer->identity().hex().substr(0, 16) +
                     "…, the set was made with " + plan.parameters.tokenizer_name + " " +
                     plan.parameters.tokenizer.hex().substr(0, 16) + "…; name that one with --tokenizer"};
  return tokenizer;
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

Path directory_argument(const CommandContext& context, const std::string& text) {
  return (context.environment.working_directory / text).lexically_normal();
}

Result<Plan> existing_plan(const Path& directory) {
  LMEMO_ASSIGN(std::optional<Plan> plan, chunks::load_plan(directory));
  if (!plan)
    return Error{ErrorCode::invalid_argument, "there is no plan in " + directory.string() +
                                                  "; `lmemo chunks build INPUT… --output " +
                                                  directory.string() + "` makes one"};
  return std::move(*plan);
}

Result<std::unique_ptr<FileLock>> lock_plan(CommandContext& context, const Path& directory) {
  LMEMO_TRY(chunks::SetPaths{directory}.make());
  bool has_told = false;
  while (true) {
    auto lock = real_file_system().try_lock(directory / "plan.lock");
    if (lock.ok() || lock.error().code != ErrorCode::busy) return lock;
    if (!has_told) context.console.note("another process is planning; waiting for it");
    has_told = true;
    if (context.was_interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Result<std::vector<std::string>> local_inputs(CommandContext& context, const std::vector<std::string>& inputs,
                                              const Path& directory, const std::string& text_field) {
  std::vector<std::string> local;
  for (const std::string& input : inputs) {
    const bool is_remote = input.find("://") != std::string::npos;
    const bool is_table =
        input.ends_with(".parquet") || input.ends_with(".arrow") || input.ends_with(".feather");
    if (!is_remote && !is_table) {
      local.push_back(input);
      continue;
    }
    if (!context.environment.import_documents)
      return Error{
          ErrorCode::incompatible,
          input + " needs Python; `pip install lmemo pyarrow huggingface_hub` adds it to this command"};
    LMEMO_ASSIGN(const std::vector<std::string> files,
                 context.environment.import_documents(input, (directory / "imported").string(), text_field));
    local.insert(local.end(), files.begin(), files.end());
  }
  return local;
}

Result<PlannedChunks> make_or_extend_plan(CommandContext& context, const Path& directory,
                                          std::optional<Plan> plan, const WantedChunks* wanted,
                                          const std::vector<std::string>& inputs, bool is_dry_run) {
  PlannedChunks planned;
  planned.is_new = !plan;
  if (plan && wanted) {
    if (const auto differs = difference(plan->parameters, wanted->plan.parameters))
      return Error{ErrorCode::incompatible,
                   directory.string() + " was made otherwise: " + *differs + "; name another --output"};
  }
  if (!plan) {
    plan = wanted->plan;
    plan->inputs = absolute_inputs(context, inputs);
  }
  LMEMO_ASSIGN(const std::vector<std::string> local,
               local_inputs(context, inputs, directory, plan->parameters.text_field));
  LMEMO_ASSIGN(const std::vector<chunks::InputFile> files,
               chunks::find_input_files(local, context.environment.working_directory));
  const Watch watch = chunks_watch(context);
  if (planned.is_new) {
    LMEMO_ASSIGN(const chunks::Sample sample,
                 chunks::sample_inputs(files, plan->parameters, *wanted->tokenizer));
    const double rows = static_cast<double>(plan->chunk_sequences) * plan->parameters.sequence_length;
    plan->chunk_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(rows * sample.ratio()));
  } else {
    // First what became of the old sources; what is new comes behind it.
    LMEMO_ASSIGN(chunks::Reconciliation sources, chunks::reconcile(*plan, watch));
    if (!sources.stale.empty())
      context.console.warn("sources of " + format_count(sources.stale.size()) + " chunks have changed (" +
                           ranges_in_words(sources.stale) + "); `lmemo chunks repair " + directory.string() +
                           "` builds them again");
    if (!is_dry_run && (!sources.revision.entries.empty() || !sources.revision.sources.empty()))
      LMEMO_TRY(chunks::append_to_plan(directory, *plan, std::move(sources.revision)));
  }
  LMEMO_ASSIGN(chunks::PlanPart part, chunks::scan(*plan, files, planned.scan, watch));
  context.console.end_progress();
  planned.new_chunks = part.entries.size();
  if (!is_dry_run && (planned.is_new || !part.entries.empty() || !part.sources.empty())) {
    LMEMO_TRY(chunks::append_to_plan(directory, *plan, std::move(part)));
  } else if (is_dry_run) {
    for (auto& source : part.sources) plan->sources[source.number] = source;
    for (auto& entry : part.entries) plan->entries.push_back(std::move(entry));
  }
  planned.plan = std::move(*plan);
  return planned;
}

Result<std::vector<uint64_t>> asked_chunks(const CommandContext& context, uint64_t chunk_count) {
  LMEMO_ASSIGN(const uint64_t start, chunks_count(context, "start-chunk", 0));
  LMEMO_ASSIGN(const uint64_t end, chunks_count(context, "end-chunk", chunk_count));
  uint64_t index = 0, shards = 1;
  if (const auto shard = context.arguments.text("shard")) {
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

void add_numbers(JsonWriter& json, std::string_view name, const std::vector<uint64_t>& numbers) {
  json.begin_array(name);
  for (const uint64_t number : numbers) json.value(number);
  json.end_array();
}

std::string ranges_in_words(const std::vector<uint64_t>& numbers) {
  std::string words;
  for (size_t at = 0; at < numbers.size();) {
    size_t last = at;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    words += (words.empty() ? "" : ", ") + std::to_string(numbers[at]);
    if (last > at) words += "–" + std::to_string(numbers[last]);
    at = last + 1;
    if (words.size() > 200 && at < numbers.size()) return words + ", …";
  }
  return words;
}

}  // namespace lmemo::cli
