#include "cli/commands/chunks_support.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/followed.h"
#include "base/tick_clock.h"
#include "base/units.h"
#include "cli/tokenizer_argument.h"

namespace lmemo::cli {
namespace {

using chunks::Plan;

// In what a plan differs from the one that is asked for.
std::optional<std::string> difference(const Plan& has, const Plan& wanted) {
  const auto words = [](const std::string& name, const std::string& mine, const std::string& theirs) {
    return name + ": the set has " + mine + ", asked for " + theirs;
  };
  const auto mine = chunks::parameter_fields(has.parameters),
             theirs = chunks::parameter_fields(wanted.parameters);
  for (size_t at = 0; at < mine.size(); ++at)
    if (mine[at] != theirs[at])
      return words(mine[at].name, mine[at].value.describe(), theirs[at].value.describe());
  if (has.chunk_sequences != wanted.chunk_sequences)
    return words("chunk_sequences", std::to_string(has.chunk_sequences),
                 std::to_string(wanted.chunk_sequences));
  const auto limit = [](uint64_t documents) { return documents == 0 ? "none" : std::to_string(documents); };
  if (has.limit_documents != wanted.limit_documents)
    return words("limit_documents", limit(has.limit_documents), limit(wanted.limit_documents));
  return std::nullopt;
}

bool is_address(const std::string& input) { return input.find("://") != std::string::npos; }

bool has_extension(const Path& path, std::initializer_list<std::string_view> extensions) {
  return std::find(extensions.begin(), extensions.end(), path.extension().native()) != extensions.end();
}
bool is_table(const Path& path) { return has_extension(path, {".parquet", ".arrow", ".feather"}); }
bool is_separated_values(const Path& path) { return has_extension(path, {".csv", ".tsv"}); }

std::vector<std::string> absolute_inputs(const CommandContext& context,
                                         const std::vector<std::string>& inputs) {
  std::vector<std::string> absolute;
  for (const std::string& input : inputs)
    absolute.push_back(is_address(input)
                           ? input
                           : (context.environment.working_directory / input).lexically_normal().string());
  return absolute;
}

// On disk too, unless nothing is to be written.
Status add_to_plan(const Path& directory, Plan& plan, chunks::PlanPart part, bool is_dry_run) {
  if (!is_dry_run) return chunks::append_to_plan(directory, plan, std::move(part));
  chunks::apply(plan, part);
  return {};
}

}  // namespace

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

Path directory_argument(const CommandContext& context, const std::string& text) {
  return followed((context.environment.working_directory / text).lexically_normal());
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

Result<std::vector<chunks::InputFile>> input_files(CommandContext& context,
                                                   const std::vector<std::string>& inputs,
                                                   const Path& directory, const std::string& text_field,
                                                   const Path& import_directory) {
  std::vector<chunks::InputFile> files;
  const auto import_into_files = [&](const std::string& input) -> Status {
    if (!context.environment.import_documents)
      return Error{
          ErrorCode::incompatible,
          input + " needs Python; `pip install lmemo pyarrow huggingface_hub` adds it to this command"};
    LMEMO_ASSIGN(const std::vector<std::string> imported,
                 context.environment.import_documents(input, import_directory.string(), text_field));
    for (const std::string& path : imported) files.push_back({path, chunks::type_of_input(path)});
    return {};
  };
  for (const std::string& input : inputs) {
    if (is_address(input)) {
      LMEMO_TRY(import_into_files(input));
      continue;
    }
    LMEMO_ASSIGN(const std::vector<chunks::InputFile> found,
                 chunks::find_input_files({input}, context.environment.working_directory, directory));
    bool has_warned = false;
    for (const chunks::InputFile& file : found) {
      if (is_table(file.path)) {
        LMEMO_TRY(import_into_files(file.path.string()));
        continue;
      }
      if (is_separated_values(file.path) && !std::exchange(has_warned, true))
        context.console.warn(file.path.string() +
                             " is taken as one text, lines and commas and all; as JSON lines or Parquet each "
                             "line would be a document");
      files.push_back(file);
    }
  }
  return files;
}

Result<PlannedChunks> make_or_extend_plan(CommandContext& context, const Path& directory,
                                          std::optional<Plan> plan, const WantedChunks* wanted,
                                          const std::vector<std::string>& inputs, bool is_dry_run) {
  PlannedChunks planned;
  planned.is_new = !plan;
  if (plan && wanted) {
    if (const auto differs = difference(*plan, wanted->plan))
      return Error{ErrorCode::incompatible,
                   directory.string() + " was made otherwise: " + *differs + "; name another --output"};
  }
  if (!plan) plan = wanted->plan;
  for (std::string& input : absolute_inputs(context, inputs))
    if (std::find(plan->inputs.begin(), plan->inputs.end(), input) == plan->inputs.end())
      plan->inputs.push_back(std::move(input));
  const ScratchFolder scratch;  // A dry run leaves nothing behind.
  LMEMO_ASSIGN(const std::vector<chunks::InputFile> files,
               input_files(context, inputs, directory, plan->parameters.text_field,
                           (is_dry_run ? scratch.path() : directory) / "imported"));
  const Watch watch = chunks_watch(context);
  if (planned.is_new) {
    LMEMO_ASSIGN(const chunks::Sample sample,
                 chunks::sample_inputs(files, plan->parameters, *wanted->tokenizer));
    const double rows = static_cast<double>(plan->chunk_sequences) * plan->parameters.sequence_length;
    plan->chunk_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(rows * sample.ratio()));
  } else {
    // First what became of the old sources; what is new comes behind it.
    std::vector<Path> paths;
    for (const chunks::InputFile& file : files) paths.push_back(file.path);
    chunks::PlanPart moved;
    LMEMO_ASSIGN(moved.sources, chunks::moved_sources(*plan, paths));
    for (const chunks::PlanSource& source : moved.sources) {
      const std::string before = plan->sources.at(source.number).path.string();
      context.console.note(before + " is now " + source.path.string());
      std::erase(plan->inputs, before);
    }
    if (!moved.sources.empty()) LMEMO_TRY(add_to_plan(directory, *plan, std::move(moved), is_dry_run));
    LMEMO_ASSIGN(chunks::Reconciliation sources, chunks::reconcile(*plan, watch));
    if (!sources.stale.empty())
      context.console.warn("sources of " + format_count(sources.stale.size()) + " chunks have changed (" +
                           ranges_in_words(sources.stale) + "); `lmemo chunks repair " + directory.string() +
                           "` builds them again");
    if (!sources.revision.entries.empty() || !sources.revision.sources.empty())
      LMEMO_TRY(add_to_plan(directory, *plan, std::move(sources.revision), is_dry_run));
  }
  LMEMO_ASSIGN(chunks::PlanPart part, chunks::scan(*plan, files, planned.scan, watch));
  context.console.end_progress();
  planned.new_chunks = part.entries.size();
  if (planned.is_new || !part.entries.empty() || !part.sources.empty())
    LMEMO_TRY(add_to_plan(directory, *plan, std::move(part), is_dry_run));
  planned.plan = std::move(*plan);
  return planned;
}

ScratchFolder::ScratchFolder() {
  std::error_code ignored;
  path_ = std::filesystem::temp_directory_path(ignored) /
          ("lmemo-" + std::to_string(::getpid()) + "-" + std::to_string(monotonic_ns()));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

double recent_rate(const chunks::SetStatus& status) {
  std::vector<int64_t> times;
  for (const auto& [number, entry] : status.registry) times.push_back(entry.modified_ns);
  if (times.size() < 3) return 0;
  std::sort(times.begin(), times.end());
  const size_t first = times.size() > 50 ? times.size() - 50 : 0;
  // The median of the pauses between chunks: between one build and the next there may be a night.
  std::vector<int64_t> pauses;
  for (size_t at = first + 1; at < times.size(); ++at) pauses.push_back(times[at] - times[at - 1]);
  const auto middle = pauses.begin() + static_cast<ptrdiff_t>(pauses.size() / 2);
  std::nth_element(pauses.begin(), middle, pauses.end());
  return *middle > 0 ? 1e9 / static_cast<double>(*middle) : 0;
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
