#include "tokenizer/reference/wordpiece.h"

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {

bool WordPiece::cover(std::string_view piece, std::vector<uint32_t>& ids) const {
  for (size_t start = 0; start < piece.size();) {
    size_t end = piece.size();
    std::optional<uint32_t> id;
    for (; end > start; end -= char_bytes_before(piece, end)) {
      const std::string_view part = piece.substr(start, end - start);
      id = start == 0 ? vocabulary_.id_of(part) : vocabulary_.id_of(prefix_ + std::string(part));
      if (id) break;
    }
    if (!id) return false;
    ids.push_back(*id);
    start = end;
  }
  return true;
}

Status WordPiece::tokenize(std::string_view piece, std::vector<uint32_t>& ids) const {
  const size_t before = ids.size();
  if (count_chars(piece) <= max_chars_ && cover(piece, ids)) return {};
  ids.resize(before);
  const std::optional<uint32_t> unknown = vocabulary_.id_of(unk_token_);
  if (!unknown)
    return Error{ErrorCode::invalid_argument,
                 "unknown word, and unk_token " + shown(unk_token_) + " is not in the vocabulary"};
  ids.push_back(*unknown);
  return {};
}

}  // namespace lmemo::tokenizer
