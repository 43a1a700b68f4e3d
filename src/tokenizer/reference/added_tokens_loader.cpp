// "added_tokens" of a tokenizer.json.

#include <limits>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/added_tokens.h"

namespace lmemo::tokenizer {

Result<std::vector<AddedToken>> added_tokens_in(const nlohmann::json& json, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (!json.is_array()) return refusal(where, std::string("expected an array, found ") + json.type_name());
  for (size_t i = 0; i < json.size(); ++i) {
    LMEMO_ASSIGN(const Fields fields, Fields::of(json[i], where + "[" + std::to_string(i) + "]"));
    LMEMO_TRY(fields.number("id", std::numeric_limits<uint32_t>::max()));
    AddedToken token;
    LMEMO_ASSIGN(token.content, fields.text("content"));
    LMEMO_ASSIGN(token.is_single_word, fields.flag("single_word"));
    LMEMO_ASSIGN(token.strips_left, fields.flag("lstrip"));
    LMEMO_ASSIGN(token.strips_right, fields.flag("rstrip"));
    LMEMO_ASSIGN(token.is_normalized, fields.flag("normalized"));
    LMEMO_ASSIGN(token.is_special, fields.flag("special"));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace lmemo::tokenizer
