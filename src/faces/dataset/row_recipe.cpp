#include "faces/dataset/row_recipe.h"

#include "base/hex.h"
#include "base/sha256.h"
#include "sources/text_file.h"

namespace lmemo::dataset {
namespace {

constexpr uint64_t kMaxTemplateBytes = uint64_t{16} << 20;

Error misuse(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Status read_fields(const DatasetOptions& options, RowRecipe& recipe) {
  const bool has_prompt = !options.prompt_field.empty() || !options.completion_field.empty();
  const int kinds = int{!options.text_field.empty()} + int{!options.messages_field.empty()} + int{has_prompt};
  if (kinds > 1)
    return misuse(
        "rows come from one kind of field: text_field, messages_field, or prompt_field with "
        "completion_field");
  if (has_prompt && (options.prompt_field.empty() || options.completion_field.empty()))
    return misuse("prompt_field and completion_field go together");
  std::string first = options.text_field.empty() ? "text" : options.text_field;
  if (!options.messages_field.empty()) {
    recipe.fields = RowFields::messages;
    first = options.messages_field;
  } else if (has_prompt) {
    recipe.fields = RowFields::prompt;
    first = options.prompt_field;
    LMEMO_ASSIGN(recipe.second, FieldPath::parse(options.completion_field));
  }
  LMEMO_ASSIGN(recipe.first, FieldPath::parse(first));
  return {};
}

Status read_template(const DatasetOptions& options, const TokenizerFacts& facts, RowRecipe& recipe) {
  std::string name = options.chat_template;
  if (name.empty()) name = recipe.fields == RowFields::messages ? "tokenizer" : "none";
  if (name == "none") {
    if (recipe.fields == RowFields::messages)
      return misuse("messages need a template: chatml, tokenizer (the model's own) or a file with one");
    return {};
  }
  if (recipe.fields == RowFields::text)
    return misuse("template " + name +
                  " is for messages or for prompt and completion; a text is taken as it is");
  if (name == "chatml") {
    recipe.template_kind = RowTemplate::chatml;
    return {};
  }
  recipe.template_kind = RowTemplate::rendered;
  if (name == "tokenizer") {
    if (!facts.has_chat_template)
      return misuse(options.tokenizer.string() +
                    " has no chat template; choose --template chatml or a file with one");
    recipe.template_text = facts.chat_template;
  } else {
    LMEMO_ASSIGN(recipe.template_text, read_text_file(name, kMaxTemplateBytes));
  }
  return {};
}

Result<std::optional<uint32_t>> id_of_token(const Tokenizer& tokenizer, const std::string& token,
                                            std::string_view role) {
  if (token.empty()) return std::optional<uint32_t>();
  const std::optional<uint32_t> id = tokenizer.token_to_id(token);
  if (!id) return misuse(std::string(role) + " \"" + token + "\" is no token of this tokenizer");
  return id;
}

}  // namespace

std::vector<Field> RowRecipe::key_fields() const {
  static constexpr const char* kFields[] = {"text", "messages", "prompt and completion"};
  static constexpr const char* kTemplates[] = {"none", "chatml", ""};
  std::string template_name = kTemplates[static_cast<int>(template_kind)];
  if (template_kind == RowTemplate::rendered)
    template_name = "sha256 " + sha256(bytes_of(template_text)).hex();
  return {{"tokenizer", tokenizer_identity},
          {"fields", kFields[static_cast<int>(fields)]},
          {"template", template_name},
          {"loss", std::string(name_of(loss))},
          {"eos", eos_id ? FieldValue(int64_t{*eos_id}) : FieldValue()}};
}

Result<TokenizerFacts> facts_of(const DatasetOptions& options, const Tokenizer& tokenizer) {
  TokenizerFacts facts;
  facts.identity = tokenizer.identity();
  facts.vocab_size = tokenizer.vocab_size();
  if (tokenizer.engine() == kHuggingFaceEngine && options.foreign_engine)
    facts.foreign_engine = options.foreign_engine();
  ModelSettings settings;
  std::error_code ignored;
  if (std::filesystem::is_directory(options.tokenizer, ignored)) {
    LMEMO_ASSIGN(settings, ModelSettings::read(options.tokenizer));
  }
  if (const std::string* text = settings.chat_template()) {
    facts.chat_template = *text;
    facts.has_chat_template = true;
  }
  const auto token_of = [&](std::string_view role, const std::string& asked) {
    if (!asked.empty()) return asked;
    for (const auto& [name, token] : settings.special_tokens)
      if (name == role) return token;
    return std::string();
  };
  LMEMO_ASSIGN(facts.eos_id, id_of_token(tokenizer, token_of("eos_token", options.eos_token), "eos_token"));
  LMEMO_ASSIGN(facts.pad_id, id_of_token(tokenizer, token_of("pad_token", options.pad_token), "pad_token"));
  if (!facts.pad_id) facts.pad_id = facts.eos_id;
  return facts;
}

Result<RowRecipe> recipe_of(const DatasetOptions& options, const TokenizerFacts& facts) {
  RowRecipe recipe;
  recipe.tokenizer_identity = facts.identity;
  LMEMO_TRY(read_fields(options, recipe));
  LMEMO_TRY(read_template(options, facts, recipe));

  recipe.loss = options.loss;
  if (recipe.loss == RowLoss::completion && recipe.fields != RowFields::prompt)
    return misuse("loss completion is for prompt_field and completion_field");
  if (recipe.loss == RowLoss::assistant && recipe.fields == RowFields::text)
    return misuse("loss assistant is for messages_field, or for prompt_field and completion_field");
  // With a prompt and its completion the two mean the same.
  if (recipe.fields == RowFields::prompt && recipe.loss == RowLoss::assistant)
    recipe.loss = RowLoss::completion;

  if (recipe.template_kind == RowTemplate::none && options.append_eos) {
    if (!facts.eos_id)
      return misuse(options.tokenizer.string() +
                    " names no eos_token (tokenizer_config.json does); give --eos-token TOKEN, or --no-eos");
    recipe.eos_id = facts.eos_id;
  }
  if (options.padding != RowPadding::none && !facts.pad_id)
    return misuse(options.tokenizer.string() +
                  " names neither pad_token nor eos_token; give --pad-token TOKEN");
  return recipe;
}

}  // namespace lmemo::dataset
