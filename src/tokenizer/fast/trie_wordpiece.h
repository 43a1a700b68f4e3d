// WordPiece with two tries: one for the start of a word, one for what continues it.
#pragma once

#include <memory>
#include <optional>

#include "tokenizer/double_array_trie.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/reference/wordpiece.h"

namespace lmemo::tokenizer {

class TrieWordPiece final : public PieceModel {
 public:
  // The reference has to outlive it: it is asked where a word is unknown and there is no token to say so.
  explicit TrieWordPiece(const WordPiece& reference);

  Status encode(std::string_view piece, IdBuffer& out) const override;

 private:
  bool cover(std::string_view piece, IdBuffer& out) const;

  const WordPiece& reference_;
  const std::optional<uint32_t> unknown_;
  std::vector<std::pair<uint32_t, uint32_t>> tokens_;  // Bytes that a token takes in a word, and its id.
  DoubleArrayTrie starts_, continuations_;             // To places in tokens_.
};

}  // namespace lmemo::tokenizer
