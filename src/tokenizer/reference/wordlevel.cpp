#include "tokenizer/reference/wordlevel.h"

#include "tokenizer/json_fields.h"

namespace lmemo::tokenizer {

Status WordLevel::tokenize(std::string_view piece, std::vector<uint32_t>& ids) const {
  std::optional<uint32_t> id = vocabulary_.id_of(piece);
  if (!id) id = vocabulary_.id_of(unk_token_);
  if (!id)
    return Error{ErrorCode::invalid_argument,
                 "unknown word, and unk_token " + shown(unk_token_) + " is not in the vocabulary"};
  ids.push_back(*id);
  return {};
}

}  // namespace lmemo::tokenizer
