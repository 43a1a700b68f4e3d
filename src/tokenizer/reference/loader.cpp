#include "tokenizer/reference/loader.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/bpe.h"
#include "tokenizer/tokenizer_document.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

// Whose rules we follow, and which version of our reading of them: part of every identity. Count up when a fix
// changes the ids of any text.
constexpr std::string_view kRules = "lmemo tokenizer, rules of HuggingFace tokenizers 0.23.3, reading 2\n";

const Json kNull = nullptr;

const Json& part_of(const Json& file, const char* name) {
  const auto found = file.find(name);
  return found == file.end() ? kNull : *found;
}

std::string in_words(const Json& part);

std::string list_in_words(const Json& list) {
  std::string words;
  for (const Json& item : list) words += (words.empty() ? "" : ", ") + in_words(item);
  return words;
}

// "Sequence of NFC, Replace(" " by "▁")", "ByteLevel(add_prefix_space, use_regex)": the type, and what is switched on.
std::string in_words(const Json& part) {
  if (!part.is_object()) return "none";
  std::string options;
  const auto add = [&](const std::string& option) { options += (options.empty() ? "" : ", ") + option; };
  for (const auto& [key, value] : part.items()) {
    if (key == "type" || key == "precompiled_charsmap") continue;
    if (value.is_boolean()) {
      if (value.get<bool>()) add(key);
    } else if (value.is_string()) {
      add(key + " " + shown(value.get_ref<const std::string&>()));
    } else if (value.is_number()) {
      add(key + " " + value.dump());
    } else if (key == "pattern" && value.is_object()) {
      for (const auto& [kind, pattern] : value.items())
        if (pattern.is_string()) add(shown(pattern.get_ref<const std::string&>()));
    } else if (key == "strategy" && value.is_object()) {
      add(value.dump());
    } else if (value.is_array() &&
               (key == "normalizers" || key == "pretokenizers" || key == "processors" || key == "decoders")) {
      return "Sequence of " + std::to_string(value.size()) + ": " + list_in_words(value);
    }
  }
  const std::string type =
      part.contains("type") && part["type"].is_string() ? part["type"].get<std::string>() : "";
  if (type.empty()) return options;
  return type + (options.empty() ? "" : "(" + options + ")");
}

std::vector<TokenizerPart> parts_in_words(const TokenizerDocument& document, const Model& model,
                                          const std::vector<AddedToken>& added_tokens) {
  const Json& file = document.tree;
  std::string model_words = std::to_string(model.vocab_size()) + " tokens";
  if (const auto* bpe = dynamic_cast<const Bpe*>(&model)) {
    model_words += ", " + std::to_string(bpe->merges().size()) + " merges";
    model_words = "BPE, " + model_words;
    if (bpe->options().byte_fallback) model_words += ", byte_fallback";
    if (bpe->options().ignore_merges) model_words += ", ignore_merges";
    if (bpe->options().unk_token) model_words += ", unknown " + shown(*bpe->options().unk_token);
  } else {
    model_words = file["model"].value("type", "") + ", " + model_words;
  }
  const auto special = std::count_if(added_tokens.begin(), added_tokens.end(),
                                     [](const AddedToken& token) { return token.is_special; });
  std::vector<TokenizerPart> parts = {{"model", model_words},
                                      {"normalizer", in_words(part_of(file, "normalizer"))},
                                      {"pre-tokenizer", in_words(part_of(file, "pre_tokenizer"))},
                                      {"post-processor", in_words(part_of(file, "post_processor"))},
                                      {"decoder", in_words(part_of(file, "decoder"))},
                                      {"added tokens", std::to_string(added_tokens.size()) + ", " +
                                                           std::to_string(special) + " of them special"}};
  for (const char* name : {"truncation", "padding"}) parts.push_back({name, in_words(part_of(file, name))});
  return parts;
}

Result<Parts> parts_of(TokenizerDocument& document) {
  const Json& file = document.tree;
  LMEMO_ASSIGN(const Fields fields, Fields::of(file, "top level"));
  LMEMO_TRY(fields.expect_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                                "pre_tokenizer", "post_processor", "decoder", "model"}));
  LMEMO_TRY(fields.expect_no_null({"version", "added_tokens"}));
  LMEMO_ASSIGN(const std::optional<std::string> version, fields.optional_text("version"));
  if (version.value_or("1.0") != "1.0")
    return refusal("version", "expected \"1.0\", found " + shown(*version));
  LMEMO_TRY(fields.get("model"));

  Parts parts;
  std::future<Digest> identity = document.identity(kRules);
  LMEMO_ASSIGN(parts.normalizer, make_normalizer(part_of(file, "normalizer"), "normalizer"));
  LMEMO_ASSIGN(parts.pre_tokenizer, make_pre_tokenizer(part_of(file, "pre_tokenizer"), "pre_tokenizer"));
  LMEMO_ASSIGN(parts.post_processor, make_post_processor(part_of(file, "post_processor"), "post_processor"));
  LMEMO_ASSIGN(parts.decoder, make_decoder(part_of(file, "decoder"), "decoder"));
  const size_t added_count = parts.post_processor ? parts.post_processor->added_count() : 0;
  LMEMO_ASSIGN(parts.truncation, truncation_in(part_of(file, "truncation"), added_count, "truncation"));
  LMEMO_ASSIGN(parts.padding, padding_in(part_of(file, "padding"), "padding"));
  LMEMO_ASSIGN(parts.model, make_model(part_of(file, "model"), document.tables, "model"));
  std::vector<AddedToken> added_tokens;
  if (fields.find("added_tokens")) {
    LMEMO_ASSIGN(added_tokens, added_tokens_in(part_of(file, "added_tokens"), "added_tokens"));
  }
  LMEMO_ASSIGN(parts.added_tokens,
               AddedTokens::make(added_tokens, *parts.model, parts.normalizer.get(), "added_tokens"));
  parts.in_words = parts_in_words(document, *parts.model, added_tokens);
  parts.identity = identity.get();
  return parts;
}

}  // namespace

Result<LoadedFile> load_file(std::string_view json) {
  LMEMO_ASSIGN(TokenizerDocument document, TokenizerDocument::read(json));
  LMEMO_ASSIGN(Parts parts, parts_of(document));
  return LoadedFile{std::move(parts), std::move(document.tree)};
}

Result<std::shared_ptr<const Tokenizer>> make_reference(std::string_view json) {
  LMEMO_ASSIGN(LoadedFile file, load_file(json));
  return std::shared_ptr<const Tokenizer>(std::make_shared<ReferenceTokenizer>(std::move(file.parts)));
}

}  // namespace lmemo::tokenizer
