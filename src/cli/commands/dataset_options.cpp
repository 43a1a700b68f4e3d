#include "cli/commands/dataset_options.h"

#include <charconv>

#include "cli/tokenizer_argument.h"

namespace lmemo::cli {
namespace {

template <typename Number>
Result<Number> number_in(const std::string& text, const std::string& option, const char* expected) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{ErrorCode::invalid_argument,
                 "--" + option + ": found \"" + text + "\", expected " + expected};
  return number;
}

}  // namespace

std::vector<OptionSpec> dataset_option_specs() {
  OptionSpec tokenizer = tokenizer_option(false);
  return {
      tokenizer,
      {.name = "model-name",
       .type = ValueType::text,
       .value_name = "NAME",
       .help = "instead: a model's directory, or its name on HuggingFace's hub"},
      {.name = "train-file",
       .type = ValueType::file,
       .value_name = "FILE...",
       .help = "JSON lines; plain, gzip or zstd",
       .is_required = true,
       .is_list = true},
      {.name = "eval-file",
       .type = ValueType::file,
       .value_name = "FILE...",
       .help = "the same for eval",
       .is_list = true},
      {.name = "eval-split",
       .type = ValueType::text,
       .value_name = "SHARE",
       .help = "the share of train rows that goes to eval, by content and seed",
       .default_text = "0"},
      {.name = "seed",
       .type = ValueType::text,
       .value_name = "N",
       .help = "for --eval-split",
       .default_text = "42"},
      {.name = "max-length",
       .type = ValueType::count,
       .value_name = "N",
       .help = "ids in a row at most",
       .default_text = "512"},
      {.name = "overflow",
       .type = ValueType::choice,
       .value_name = "HOW",
       .help = "what happens to longer rows",
       .default_text = "truncate",
       .choices = {"truncate", "drop", "split", "error"}},
      {.name = "padding",
       .type = ValueType::choice,
       .value_name = "HOW",
       .help = "on disk; collators pad better",
       .default_text = "none",
       .choices = {"none", "longest", "max_length"}},
      {.name = "text-field",
       .type = ValueType::text,
       .value_name = "NAME",
       .help = "rows are texts; dots lead into objects",
       .default_text = "text"},
      {.name = "messages-field",
       .type = ValueType::text,
       .value_name = "NAME",
       .help = "rows are chats: lists of role and content"},
      {.name = "prompt-field",
       .type = ValueType::text,
       .value_name = "NAME",
       .help = "rows are a prompt and a completion: the prompt"},
      {.name = "completion-field", .type = ValueType::text, .value_name = "NAME", .help = "the completion"},
      {.name = "template",
       .type = ValueType::text,
       .value_name = "NAME",
       .help = "chatml, tokenizer (the model's own), none, or a file with a Jinja template",
       .default_text = "tokenizer for messages, else none"},
      {.name = "loss",
       .type = ValueType::choice,
       .value_name = "WHAT",
       .help = "what is learned; labels of the rest are -100",
       .default_text = "all",
       .choices = {"all", "completion", "assistant"}},
      {.name = "eos-token",
       .type = ValueType::text,
       .value_name = "TOKEN",
       .help = "what ends a text",
       .default_text = "the tokenizer's"},
      {.name = "no-eos", .help = "append no end"},
      {.name = "pad-token",
       .type = ValueType::text,
       .value_name = "TOKEN",
       .help = "for --padding",
       .default_text = "the tokenizer's, else its end"},
      {.name = "strict", .help = "fail on the first bad lines"},
      {.name = "workers",
       .type = ValueType::count,
       .value_name = "N",
       .help = "threads; the result is the same for any number",
       .default_text = "one per core"},
      {.name = "rehash",
       .help = "read files whole even if size, times and inode say that they did not change"},
  };
}

Result<DatasetOptions> dataset_options(const CommandContext& context) {
  const Arguments& given = context.arguments;
  const std::filesystem::path& here = context.environment.working_directory;
  DatasetOptions options;
  const auto tokenizer = given.text("tokenizer");
  const auto model = given.text("model-name");
  if (!tokenizer && !model)
    return Error{ErrorCode::invalid_argument, "missing --tokenizer TOKENIZER or --model-name NAME"};
  options.model_name = model.value_or(tokenizer.value_or(""));
  LMEMO_ASSIGN(options.tokenizer,
               find_model(tokenizer.value_or(options.model_name), here, context.environment.fetch_model));
  options.load_tokenizer = [&context](const std::filesystem::path& path) {
    return load_tokenizer_file(context, path);
  };
  options.foreign_engine = context.environment.foreign_engine;
  for (const std::string& file : given.texts("train-file")) options.train_files.push_back(here / file);
  for (const std::string& file : given.texts("eval-file")) options.eval_files.push_back(here / file);
  if (const auto share = given.text("eval-split")) {
    LMEMO_ASSIGN(options.eval_split, number_in<double>(*share, "eval-split", "a share such as 0.1"));
  }
  if (const auto seed = given.text("seed")) {
    LMEMO_ASSIGN(options.seed, number_in<int64_t>(*seed, "seed", "a whole number"));
  }
  options.max_length = given.count("max-length").value_or(options.max_length);
  if (const auto name = given.text("overflow")) options.overflow = row_overflow_named(*name).value();
  if (const auto name = given.text("padding")) options.padding = row_padding_named(*name).value();
  if (const auto name = given.text("loss")) options.loss = row_loss_named(*name).value();
  options.text_field = given.text("text-field").value_or("");
  options.messages_field = given.text("messages-field").value_or("");
  options.prompt_field = given.text("prompt-field").value_or("");
  options.completion_field = given.text("completion-field").value_or("");
  if (const auto name = given.text("template")) {
    const bool is_word = *name == "none" || *name == "chatml" || *name == "tokenizer";
    options.chat_template = is_word ? *name : (here / *name).string();
  }
  options.append_eos = !given.has("no-eos");
  options.eos_token = given.text("eos-token").value_or("");
  options.pad_token = given.text("pad-token").value_or("");
  options.is_strict = given.has("strict");
  options.workers = static_cast<unsigned>(std::min<uint64_t>(given.count("workers").value_or(0), 1024));
  options.rehash = given.has("rehash");
  return options;
}

}  // namespace lmemo::cli
