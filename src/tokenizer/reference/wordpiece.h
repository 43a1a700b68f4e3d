// WordPiece: the longest token that fits, again and again; a word that cannot be covered is unknown as a whole.
#pragma once

#include <string>

#include "tokenizer/reference/model.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

class WordPiece final : public Model {
 public:
  WordPiece(Vocabulary vocabulary, std::string unk_token, std::string continuing_subword_prefix,
            uint64_t max_input_chars_per_word)
      : vocabulary_(std::move(vocabulary)),
        unk_token_(std::move(unk_token)),
        prefix_(std::move(continuing_subword_prefix)),
        max_chars_(max_input_chars_per_word) {}

  Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const override;
  std::optional<uint32_t> id_of(std::string_view token) const override { return vocabulary_.id_of(token); }
  std::optional<std::string_view> token_of(uint32_t id) const override { return vocabulary_.token_of(id); }
  size_t vocab_size() const override { return vocabulary_.size(); }
  uint64_t id_limit() const override { return vocabulary_.id_limit(); }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::string& unk_token() const { return unk_token_; }
  const std::string& continuing_subword_prefix() const { return prefix_; }
  uint64_t max_input_chars_per_word() const { return max_chars_; }

 private:
  bool cover(std::string_view piece, std::vector<uint32_t>& ids) const;

  Vocabulary vocabulary_;
  std::string unk_token_;
  std::string prefix_;
  uint64_t max_chars_;
};

}  // namespace lmemo::tokenizer
