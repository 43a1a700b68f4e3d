// The whole way from text to ids, step by step and without any cleverness: the judge of everything in `fast/`.
#pragma once

#include <memory>
#include <optional>

#include "lmemo/tokenizer.h"
#include "tokenizer/reference/added_tokens.h"
#include "tokenizer/reference/decoder.h"
#include "tokenizer/reference/length_rules.h"
#include "tokenizer/reference/model.h"
#include "tokenizer/reference/normalizer.h"
#include "tokenizer/reference/post_processor.h"
#include "tokenizer/reference/pre_tokenizer.h"

namespace lmemo::tokenizer {

// What a tokenizer.json says. Parts that it leaves out are null.
struct Parts {
  AddedTokens added_tokens;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<PostProcessor> post_processor;
  std::unique_ptr<Decoder> decoder;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  Digest identity;
  std::vector<TokenizerPart> in_words;
};

class ReferenceTokenizer : public Tokenizer {
 public:
  explicit ReferenceTokenizer(Parts parts);

  Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options) const override;
  Result<TokenBatch> encode_batch(std::span<const std::string_view> texts, const EncodeOptions& options,
                                  unsigned threads) const override;
  Result<std::string> decode(std::span<const uint32_t> ids, const DecodeOptions& options) const override;
  size_t vocab_size() const override { return vocab_size_; }
  uint64_t id_limit() const override { return id_limit_; }
  std::optional<uint32_t> token_to_id(std::string_view token) const override;
  std::optional<std::string> id_to_token(uint32_t id) const override;
  const Digest& identity() const override { return parts_.identity; }
  std::string_view engine() const override { return "reference"; }
  std::vector<TokenizerPart> parts() const override { return parts_.in_words; }

 private:
  // The pieces of a text in order; an added token is its id alone.
  struct Stretch {
    Piece piece;
    std::optional<uint32_t> id;
  };

  Result<std::vector<Stretch>> stretches_of(std::string_view text) const;
  Result<std::vector<uint32_t>> ids_of(std::string_view text) const;

  size_t vocab_size_;
  uint64_t id_limit_;

 protected:
  // Appends the ids of what the pre-tokenizer made. Requires: not empty.
  virtual Status append_ids(std::string_view piece, std::vector<uint32_t>& ids) const {
    return parts_.model->tokenize(piece, ids);
  }

  Parts parts_;
};

// An invalid_argument with the place if it is not.
Status expect_utf8(std::string_view text);

}  // namespace lmemo::tokenizer
