// "model" of a tokenizer.json: which model, its vocabulary, its options.

#include <limits>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/bpe.h"
#include "tokenizer/reference/unigram.h"
#include "tokenizer/reference/wordlevel.h"
#include "tokenizer/reference/wordpiece.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using Merges = std::vector<std::pair<std::string, std::string>>;

constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max();

Result<Vocabulary> vocabulary_in(const Fields& fields) {
  LMEMO_ASSIGN(const Json* json, fields.get("vocab"));
  const std::string where = fields.where("vocab");
  if (!json->is_object())
    return refusal(where, std::string("expected an object, found ") + json->type_name());
  Vocabulary vocabulary;
  vocabulary.reserve(json->size());
  for (const auto& [token, value] : json->get_ref<const Json::object_t&>()) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxId)
      return number_in(value, kMaxId, where + "[" + shown(token) + "]").error();
    const auto id = static_cast<uint32_t>(value.get<uint64_t>());
    if (!vocabulary.add(token, id))
      return refusal(where, shown(token) + " has the id " + std::to_string(id) + " of another token, " +
                                shown(*vocabulary.token_of(id)));
  }
  return vocabulary;
}

// ["a b", …] as in merges.txt, or [["a", "b"], …].
Result<Merges> merges_in(const Fields& fields) {
  LMEMO_ASSIGN(const Json* json, fields.get("merges"));
  const std::string where = fields.where("merges");
  if (!json->is_array()) return refusal(where, std::string("expected an array, found ") + json->type_name());
  Merges merges;
  merges.reserve(json->size());
  for (size_t i = 0; i < json->size(); ++i) {
    const Json& item = (*json)[i];
    const auto place = [&] { return where + "[" + std::to_string(i) + "]"; };
    if (item.is_string() != json->front().is_string())
      return refusal(place(), "merges are partly strings and partly pairs");
    if (item.is_string()) {
      const auto& line = item.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      const size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        return refusal(place(), "expected two tokens and one space, found " + shown(line));
      merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      merges.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
    } else {
      return refusal(place(), "expected \"a b\" or [\"a\", \"b\"]");
    }
  }
  return merges;
}

Result<std::unique_ptr<Model>> make_bpe(const Fields& fields) {
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
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields));
  LMEMO_ASSIGN(const Merges merges, merges_in(fields));
  return Bpe::make(std::move(vocabulary), merges, std::move(options), fields.where());
}

Result<std::unique_ptr<Model>> make_wordpiece(const Fields& fields) {
  LMEMO_TRY(fields.expect_only(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  LMEMO_ASSIGN(std::string unk_token, fields.text("unk_token"));
  LMEMO_ASSIGN(std::string prefix, fields.text("continuing_subword_prefix"));
  LMEMO_ASSIGN(const uint64_t max_chars,
               fields.number("max_input_chars_per_word", std::numeric_limits<uint64_t>::max()));
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields));
  return std::unique_ptr<Model>(
      new WordPiece(std::move(vocabulary), std::move(unk_token), std::move(prefix), max_chars));
}

Result<std::unique_ptr<Model>> make_wordlevel(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "unk_token", "vocab"}));
  LMEMO_ASSIGN(std::string unk_token, fields.text("unk_token"));
  LMEMO_ASSIGN(Vocabulary vocabulary, vocabulary_in(fields));
  return std::unique_ptr<Model>(new WordLevel(std::move(vocabulary), std::move(unk_token)));
}

Result<std::unique_ptr<Model>> make_unigram(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "unk_id", "byte_fallback", "vocab"}));
  LMEMO_ASSIGN(const Json* json, fields.get("vocab"));
  const std::string where = fields.where("vocab");
  if (!json->is_array()) return refusal(where, std::string("expected an array, found ") + json->type_name());
  if (json->size() > kMaxId) return refusal(where, "too many tokens");

  std::vector<std::pair<std::string, double>> tokens;
  tokens.reserve(json->size());
  for (size_t i = 0; i < json->size(); ++i) {
    const Json& item = (*json)[i];
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number())
      return refusal(where + "[" + std::to_string(i) + "]", "expected [\"token\", score]");
    tokens.emplace_back(item[0].get<std::string>(), item[1].get<double>());
  }
  std::optional<uint32_t> unk_id;
  if (fields.find("unk_id")) {
    if (tokens.empty()) return refusal(where, "no tokens, but unk_id is one");
    LMEMO_ASSIGN(const uint64_t id, fields.number("unk_id", tokens.size() - 1));
    unk_id = static_cast<uint32_t>(id);
  }
  LMEMO_ASSIGN(const bool byte_fallback, fields.flag_or("byte_fallback", false));
  return std::unique_ptr<Model>(new Unigram(std::move(tokens), unk_id, byte_fallback));
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const Json& json, const std::string& where) {
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(std::optional<std::string> type, fields.optional_text("type"));
  if (!type && fields.find("merges")) type = "BPE";  // Files from before 2020 do not name the type.
  if (!type) return refusal(where, "\"type\" is missing");
  if (*type == "BPE") return make_bpe(fields);
  if (*type == "WordPiece") return make_wordpiece(fields);
  if (*type == "WordLevel") return make_wordlevel(fields);
  if (*type == "Unigram") return make_unigram(fields);
  return refusal(where + ".type", "model " + shown(*type) + " is not known");
}

}  // namespace lmemo::tokenizer
