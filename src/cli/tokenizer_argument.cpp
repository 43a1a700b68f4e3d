#include "cli/tokenizer_argument.h"

namespace lmemo::cli {

OptionSpec tokenizer_option(bool is_required) {
  return {.name = "tokenizer",
          .short_name = 't',
          .type = ValueType::file,
          .value_name = "TOKENIZER",
          .help = "a tokenizer.json, or a model's directory",
          .is_required = is_required};
}

OptionSpec pattern_option() {
  return {.name = "pattern",
          .type = ValueType::text,
          .value_name = "NAME",
          .help = "read a tiktoken rank file, with this pattern: gpt2, cl100k, o200k or a regex"};
}

std::filesystem::path tokenizer_path(const CommandContext& context, const std::string& name) {
  return context.environment.working_directory / name;
}

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const CommandContext& context, const std::string& name) {
  const std::filesystem::path file = tokenizer_path(context, name);
  if (const auto pattern = context.arguments.text("pattern")) return Tokenizer::load_tiktoken(file, {*pattern});
  return Tokenizer::load(file);
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_argument(const CommandContext& context) {
  return load_tokenizer(context, context.arguments.text("tokenizer").value());
}

}  // namespace lmemo::cli
