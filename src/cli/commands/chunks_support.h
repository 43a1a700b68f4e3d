// What the commands of `lmemo chunks` share: parameters from options and settings, the plan under its lock, the tokenizer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_context.h"
#include "faces/chunks/builder.h"
#include "faces/chunks/plan_scan.h"
#include "faces/chunks/set_status.h"

namespace lmemo::cli {

// An option, or the setting of the same name in [chunks] (with _ for -).
std::optional<std::string> chunks_option(const CommandContext& context, const std::string& name);
Result<uint64_t> chunks_count(const CommandContext& context, const std::string& name, uint64_t otherwise);
bool chunks_flag(const CommandContext& context, const std::string& name);

// Shows progress as --progress says: on the terminal, or as lines of JSON.
Watch chunks_watch(CommandContext& context);

// INPUT…, as the commands that plan take it.
PositionalSpec chunks_inputs(bool is_required);
// Options of all commands that plan, of all that build, of all that look.
std::vector<OptionSpec> chunks_plan_options();
std::vector<OptionSpec> chunks_build_options();
OptionSpec chunks_output_option();
std::vector<OptionSpec> chunks_mode_options();  // Of build alone.

// Settings of [chunks] that nobody knows are an error, and values that mean nothing.
Status check_chunks_settings(const Settings& settings);

struct WantedChunks {
  chunks::Plan plan;  // Parameters only; no sources, no entries.
  std::shared_ptr<const Tokenizer> tokenizer;
};
// From the options; the tokenizer must be named.
Result<WantedChunks> wanted_chunks(CommandContext& context);
// The tokenizer of a plan: as --tokenizer says, or where it was; the wrong one is refused.
Result<std::shared_ptr<const Tokenizer>> tokenizer_of_plan(CommandContext& context, const chunks::Plan& plan);
Result<chunks::BuildOptions> build_options(const CommandContext& context);

// A plan that must be there.
Result<chunks::Plan> existing_plan(const Path& directory);
Path directory_argument(const CommandContext& context, const std::string& text);

// The files of INPUT… that a plan can name. What needs Python, also tables in a directory, is brought into `import_directory` as
// JSON lines; what lies in the directory of the set is no input.
Result<std::vector<chunks::InputFile>> input_files(CommandContext& context,
                                                   const std::vector<std::string>& inputs,
                                                   const Path& directory, const std::string& text_field,
                                                   const Path& import_directory);

// A directory that goes away with it. For inputs that must leave nothing behind.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const Path& path() const { return path_; }  // Made by whoever writes there first.

 private:
  Path path_;
};

// Held until it goes away. Waits for whoever has it.
Result<std::unique_ptr<FileLock>> lock_plan(CommandContext& context, const Path& directory);
// Makes the plan or adds what it lacks. Requires: the lock.
struct PlannedChunks {
  chunks::Plan plan;
  chunks::ScanReport scan;
  uint64_t new_chunks = 0;
  bool is_new = false;
};
Result<PlannedChunks> make_or_extend_plan(CommandContext& context, const Path& directory,
                                          std::optional<chunks::Plan> plan, const WantedChunks* wanted,
                                          const std::vector<std::string>& inputs, bool is_dry_run);

// Those of `numbers` that are not there. Both in order.
std::vector<uint64_t> missing_among(const std::vector<uint64_t>& numbers,
                                    const std::vector<chunks::FoundChunk>& found);
void tell_plan(CommandContext& context, const Path& directory, const PlannedChunks& planned, bool is_dry_run,
               const std::optional<std::vector<uint64_t>>& to_build = std::nullopt);

// Which chunks --start-chunk, --end-chunk and --shard leave.
Result<std::vector<uint64_t>> asked_chunks(const CommandContext& context, uint64_t chunk_count);

// Builds, writes metadata.json, tells the outcome; the exit code.
int build_and_tell(CommandContext& context, const Path& directory, const chunks::Plan& plan,
                   const Tokenizer& tokenizer, const std::vector<uint64_t>& numbers,
                   const chunks::ScanReport* scan);

// Finds the gaps, tells what they will take, builds them; the exit code.
int fill_gaps(CommandContext& context, const Path& directory);
// Chunks a second, by when the last ones were published; 0: not known.
double recent_rate(const chunks::SetStatus& status);

void add_numbers(JsonWriter& json, std::string_view name, const std::vector<uint64_t>& numbers);
std::string ranges_in_words(const std::vector<uint64_t>& numbers);  // "3, 5–9"

std::vector<CommandSpec> chunks_build_commands();
std::vector<CommandSpec> chunks_mend_commands();
CommandSpec chunks_estimate_command();
std::vector<CommandSpec> chunks_look_commands();
CommandSpec chunks_export_command();

}  // namespace lmemo::cli
