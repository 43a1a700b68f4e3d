// WordLevel: a piece is a token, or unknown.
#pragma once

#include <string>

#include "tokenizer/reference/model.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

class WordLevel final : public Model {
 public:
  WordLevel(Vocabulary vocabulary, std::string unk_token)
      : vocabulary_(std::move(vocabulary)), unk_token_(std::move(unk_token)) {}

  Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const override;
  std::optional<uint32_t> id_of(std::string_view token) const override { return vocabulary_.id_of(token); }
  std::optional<std::string_view> token_of(uint32_t id) const override { return vocabulary_.token_of(id); }
  size_t vocab_size() const override { return vocabulary_.size(); }
  uint64_t id_limit() const override { return vocabulary_.id_limit(); }

 private:
  Vocabulary vocabulary_;
  std::string unk_token_;
};

}  // namespace lmemo::tokenizer
