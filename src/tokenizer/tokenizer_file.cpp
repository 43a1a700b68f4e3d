// Reads a tokenizer.json and builds the tokenizer it describes.

#include <nlohmann/json.hpp>

#include "base/file_system.h"
#include "base/sha256.h"
#include "lmemo/tokenizer.h"
#include "tokenizer/json_document.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/reference/pipeline.h"

namespace lmemo {
namespace tokenizer {
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

Digest identity_of(const Json& file) {
  Sha256 hash;
  hash.update(bytes_of(kRules));
  hash.update(bytes_of(canonical_text(file)));
  return hash.finish();
}

Result<Parts> parts_of(const Json& file) {
  LMEMO_ASSIGN(const Fields fields, Fields::of(file, "top level"));
  LMEMO_TRY(fields.expect_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                                "pre_tokenizer", "post_processor", "decoder", "model"}));
  LMEMO_ASSIGN(const std::optional<std::string> version, fields.optional_text("version"));
  if (version.value_or("1.0") != "1.0")
    return refusal("version", "expected \"1.0\", found " + shown(*version));
  LMEMO_TRY(fields.get("model"));

  Parts parts;
  LMEMO_ASSIGN(parts.normalizer, make_normalizer(part_of(file, "normalizer"), "normalizer"));
  LMEMO_ASSIGN(parts.pre_tokenizer, make_pre_tokenizer(part_of(file, "pre_tokenizer"), "pre_tokenizer"));
  LMEMO_ASSIGN(parts.post_processor, make_post_processor(part_of(file, "post_processor"), "post_processor"));
  LMEMO_ASSIGN(parts.decoder, make_decoder(part_of(file, "decoder"), "decoder"));
  const size_t added_count = parts.post_processor ? parts.post_processor->added_count() : 0;
  LMEMO_ASSIGN(parts.truncation, truncation_in(part_of(file, "truncation"), added_count, "truncation"));
  LMEMO_ASSIGN(parts.padding, padding_in(part_of(file, "padding"), "padding"));
  LMEMO_ASSIGN(parts.model, make_model(part_of(file, "model"), "model"));
  std::vector<AddedToken> added_tokens;
  if (fields.find("added_tokens")) {
    LMEMO_ASSIGN(added_tokens, added_tokens_in(part_of(file, "added_tokens"), "added_tokens"));
  }
  LMEMO_ASSIGN(parts.added_tokens,
               AddedTokens::make(added_tokens, *parts.model, parts.normalizer.get(), "added_tokens"));
  parts.identity = identity_of(file);
  return parts;
}

}  // namespace
}  // namespace tokenizer

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view json) {
  LMEMO_ASSIGN(const nlohmann::json file, tokenizer::parse_json(json));
  LMEMO_ASSIGN(tokenizer::Parts parts, tokenizer::parts_of(file));
  return std::shared_ptr<const Tokenizer>(std::make_shared<tokenizer::ReferenceTokenizer>(std::move(parts)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::canonical(path, error);  // The hub's cache is full of links.
  if (error) return errno_error(error.value(), "read", path);
  LMEMO_ASSIGN(const auto file, real_file_system().map(real));
  if (!file) return Error{ErrorCode::io_error, "cannot read " + path.string() + ": it is gone"};
  Result<std::shared_ptr<const Tokenizer>> tokenizer = from_json(text_of(file->bytes()));
  if (!tokenizer.ok()) return Error{tokenizer.error().code, path.string() + ": " + tokenizer.error().message};
  return tokenizer;
}

}  // namespace lmemo
