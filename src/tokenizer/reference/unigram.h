// Unigram: of all ways to cut a piece into tokens, the one with the highest sum of scores.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/reference/byte_trie.h"
#include "tokenizer/reference/model.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

class Unigram final : public Model {
 public:
  // A token's id is its place in the list. Requires: unk_id, if given, is one of them.
  Unigram(std::vector<std::pair<std::string, double>> tokens, std::optional<uint32_t> unk_id,
          bool byte_fallback);

  Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const override;
  std::optional<uint32_t> id_of(std::string_view token) const override;
  std::optional<std::string_view> token_of(uint32_t id) const override;
  size_t vocab_size() const override { return tokens_.size(); }

 private:
  // The best way to cut the text up to here ends with token `id`, which starts at `start`.
  struct BestEnd {
    uint32_t id = 0;
    double score = 0.0;
    std::optional<size_t> start;
  };

  Result<std::vector<BestEnd>> best_ends(std::string_view piece) const;
  Status emit(std::string_view part, std::vector<uint32_t>& ids) const;

  std::vector<std::pair<std::string, double>> tokens_;
  TextMap<uint32_t> ids_;  // Of a token that stands twice, the last one counts.
  ByteTrie trie_;
  std::unordered_map<uint32_t, uint32_t> id_at_;  // By the node of the trie where the token ends.
  std::optional<uint32_t> unk_id_;
  double unk_score_;
  bool byte_fallback_;
};

}  // namespace lmemo::tokenizer
