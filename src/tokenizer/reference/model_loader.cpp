// "model" of a tokenizer.json: which model, its vocabulary, its options.

#include <limits>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/bpe.h"
#include "tokenizer/reference/model_tables.h"
#include "tokenizer/reference/unigram.h"
#include "tokenizer/reference/wordlevel.h"
#include "tokenizer/reference/wordpiece.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
Error wrong_form(const Fields& fields, std::string_view name, const std::string& expected) {
  const Result<const Json*> json = fields.get(name);
  if (!json.ok()) return json.error();
  return refusal(fields.where(name), "expected " + expected + ", found " + (*json)->type_name());
}

Result<Vocabulary> vocabulary_in(const Fields& fields, ModelTables& tables) {
  if (!tables.vocabulary) return wrong_form(fields, "vocab", "an object");
  return std::move(*tables.vocabulary);
}

Result<std::unique_ptr<Model>> make_bpe(const Fields& fields, ModelTables& tables) {
  LMEMO_TRY(fields.expect_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                                "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                                "merges", "cache_capacity"}));
  if (const Json* dropout = fields.find("dropout"); dropout && *dropout != 0.0)
    return refusal(fields.where("dropout"), "dropout gives other ids every time; expected null");
  BpeOptions options;
  LMEMO_ASSIGN(options.unk_token, fields.optional_text("unk_token"));
  LMEMO_ASSIGN(const std::optional<std::string> prefix, fields.optional_text("continuing_subword_prefix"));
  LMEMO_ASSIGN(const std::optional<std::string> suffix, fields.optional_text("end_of_word_suffix"));
  options.continuing_subword_prefix = prefix.value_or("");
  options.end_of_word_suffix = suffix.value_or("");
  LMEMO_ASSIGN(options.fuse_unk, fields.flag_or("fuse_unk", false));
  LMEMO_ASSIGN(options.byte_fallback, fields.flag_or("byte_fallback", false));
  LMEMO_ASSIGN(options.ignore_merges, fields.flag_or("ignore_merges", false));
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields, tables));
  if (!tables.merges) return wrong_form(fields, "merges", "an array");
  return Bpe::make(std::move(vocabulary), *tables.merges, std::move(options), fields.where());
}

Result<std::unique_ptr<Model>> make_wordpiece(const Fields& fields, ModelTables& tables) {
  LMEMO_TRY(fields.expect_only(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  LMEMO_ASSIGN(std::string unk_token, fields.text("unk_token"));
  LMEMO_ASSIGN(std::string prefix, fields.text("continuing_subword_prefix"));
  LMEMO_ASSIGN(const uint64_t max_chars,
               fields.number("max_input_chars_per_word", std::numeric_limits<uint64_t>::max()));
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields, tables));
  return std::unique_ptr<Model>(
      new WordPiece(std::move(vocabulary), std::move(unk_token), std::move(prefix), max_chars));
}

Result<std::unique_ptr<Model>> make_wordlevel(const Fields& fields, ModelTables& tables) {
  LMEMO_TRY(fields.expect_only({"type", "unk_token", "vocab"}));
  LMEMO_ASSIGN(std::string unk_token, fields.text("unk_token"));
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields, tables));
  return std::unique_ptr<Model>(new WordLevel(std::move(vocabulary), std::move(unk_token)));
}

Result<std::unique_ptr<Model>> make_unigram(const Fields& fields, ModelTables& tables) {
  LMEMO_TRY(fields.expect_only({"type", "unk_id", "byte_fallback", "vocab"}));
  LMEMO_TRY(fields.expect_no_null({"byte_fallback"}));
  if (!tables.scored) return wrong_form(fields, "vocab", "an array");
  const std::vector<ScoredToken>& tokens = *tables.scored;
  std::optional<uint32_t> unk_id;
  if (fields.find("unk_id")) {
    if (tokens.empty()) return refusal(fields.where("vocab"), "no tokens, but unk_id is one");
    LMEMO_ASSIGN(const uint64_t id, fields.number("unk_id", tokens.size() - 1));
    unk_id = static_cast<uint32_t>(id);
  }
  LMEMO_ASSIGN(const bool byte_fallback, fields.flag_or("byte_fallback", false));
  return std::unique_ptr<Model>(new Unigram(tokens, unk_id, byte_fallback));
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const Json& json, ModelTables& tables, const std::string& where) {
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(std::optional<std::string> type, fields.optional_text("type"));
  if (!type && fields.find("merges")) type = "BPE";  // Files from before 2020 do not name the type.
  if (!type) return refusal(where, "\"type\" is missing");
  if (*type == "BPE") return make_bpe(fields, tables);
  if (*type == "WordPiece") return make_wordpiece(fields, tables);
  if (*type == "WordLevel") return make_wordlevel(fields, tables);
  if (*type == "Unigram") return make_unigram(fields, tables);
  return refusal(where + ".type", "model " + shown(*type) + " is not known");
}

}  // namespace lmemo::tokenizer
