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

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const CommandContext& context,
                                                        const std::string& name) {
  const std::filesystem::path file = tokenizer_path(context, name);
  if (const auto pattern = context.arguments.text("pattern"))
    return Tokenizer::load_tiktoken(file, {*pattern});
  return load_tokenizer_file(context, file);
}

Result<std::shared_ptr<const Tokenizer>> load_tokenizer_file(const CommandContext& context,
                                                             const std::filesystem::path& file) {
  auto tokenizer = Tokenizer::load(file);
  // Only what names a part is a refusal of it; the rest is no tokenizer at all.
  if (tokenizer.ok() || tokenizer.error().code != ErrorCode::incompatible ||
      tokenizer.error().message.find("tokenizer.json, ") == std::string::npos)
    return tokenizer;
  if (!context.environment.load_refused_tokenizer)
    return Error{ErrorCode::incompatible,
                 tokenizer.error().message +
                     "; the Python package runs it on HuggingFace's engine: pip install lmemo tokenizers"};
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(file, ignored);
  auto refused = context.environment.load_refused_tokenizer(is_directory ? file / "tokenizer.json" : file);
  if (!refused.ok()) return tokenizer;  // Ours says more.
  context.console.note(tokenizer.error().message + "; HuggingFace's engine runs it, slowly");
  if (!is_directory) return refused;
  LMEMO_ASSIGN(const ModelSettings settings, ModelSettings::read(file));
  return Tokenizer::with_settings(std::move(*refused), settings);
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_argument(const CommandContext& context) {
  return load_tokenizer(context, context.arguments.text("tokenizer").value());
}

}  // namespace lmemo::cli
