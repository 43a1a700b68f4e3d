#include "tokenizer/reference/loader.h"

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/tokenizer_document.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

// Whose rules we follow, and which version of our reading of them: part of every identity. Count up when a fix
// changes the ids of any text.
constexpr std::string_view kRules = "lmemo tokenizer, rules of HuggingFace tokenizers 0.23.3, reading 1\n";

const Json kNull = nullptr;

const Json& part_of(const Json& file, const char* name) {
  const auto found = file.find(name);
  return found == file.end() ? kNull : *found;
}

Result<Parts> parts_of(TokenizerDocument document) {
  const Json& file = document.tree;
  LMEMO_ASSIGN(const Fields fields, Fields::of(file, "top level"));
  LMEMO_TRY(fields.expect_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                                "pre_tokenizer", "post_processor", "decoder", "model"}));
  LMEMO_ASSIGN(const std::optional<std::string> version, fields.optional_text("version"));
  if (version.value_or("1.0") != "1.0")
    return refusal("version", "expected \"1.0\", found " + shown(*version));
  LMEMO_TRY(fields.get("model"));

  Parts parts;
  parts.identity = document.identity(kRules);
  LMEMO_ASSIGN(parts.normalizer, make_normalizer(part_of(file, "normalizer"), "normalizer"));
  LMEMO_ASSIGN(parts.pre_tokenizer, make_pre_tokenizer(part_of(file, "pre_tokenizer"), "pre_tokenizer"));
  LMEMO_ASSIGN(parts.post_processor, make_post_processor(part_of(file, "post_processor"), "post_processor"));
  LMEMO_ASSIGN(parts.decoder, make_decoder(part_of(file, "decoder"), "decoder"));
  const size_t added_count = parts.post_processor ? parts.post_processor->added_count() : 0;
  LMEMO_ASSIGN(parts.truncation, truncation_in(part_of(file, "truncation"), added_count, "truncation"));
  LMEMO_ASSIGN(parts.padding, padding_in(part_of(file, "padding"), "padding"));
  LMEMO_ASSIGN(parts.model, make_model(part_of(file, "model"), std::move(document.tables), "model"));
  std::vector<AddedToken> added_tokens;
  if (fields.find("added_tokens")) {
    LMEMO_ASSIGN(added_tokens, added_tokens_in(part_of(file, "added_tokens"), "added_tokens"));
  }
  LMEMO_ASSIGN(parts.added_tokens,
               AddedTokens::make(added_tokens, *parts.model, parts.normalizer.get(), "added_tokens"));
  return parts;
}

}  // namespace

Result<Parts> load_parts(std::string_view json) {
  LMEMO_ASSIGN(TokenizerDocument document, TokenizerDocument::read(json));
  return parts_of(std::move(document));
}

Result<std::shared_ptr<const Tokenizer>> make_reference(std::string_view json) {
  LMEMO_ASSIGN(Parts parts, load_parts(json));
  return std::shared_ptr<const Tokenizer>(std::make_shared<ReferenceTokenizer>(std::move(parts)));
}

}  // namespace lmemo::tokenizer
