// --tokenizer T and --pattern NAME, the same for every command: a tokenizer.json, a model's directory, a tiktoken rank file.
//
//   spec.options = {tokenizer_option(), pattern_option()};
//   const auto tokenizer = tokenizer_argument(context);        // In run(): loaded, or why not.
#pragma once

#include <memory>
#include <string>

#include "cli/command_context.h"
#include "cli/command_table.h"
#include "lmemo/tokenizer.h"

namespace lmemo::cli {

OptionSpec tokenizer_option(bool is_required = true);
OptionSpec pattern_option();

// Relative names count from the working directory.
std::filesystem::path tokenizer_path(const CommandContext& context, const std::string& name);
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const CommandContext& context,
                                                        const std::string& name);
// A tokenizer.json or a directory with one; in the Python package also what only HuggingFace's engine runs.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer_file(const CommandContext& context,
                                                             const std::filesystem::path& file);
// The one that --tokenizer names.
Result<std::shared_ptr<const Tokenizer>> tokenizer_argument(const CommandContext& context);

}  // namespace lmemo::cli
