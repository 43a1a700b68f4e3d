// Unigram: of all ways to cut a piece into tokens, the one with the highest sum of scores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/reference/byte_trie.h"
#include "tokenizer/reference/model.h"
#include "tokenizer/reference/model_tables.h"

namespace lmemo::tokenizer {

class Unigram final : public Model {
 public:
  // A token's id is its place in the list. Requires: unk_id, if given, is one of them.
  Unigram(std::span<const ScoredToken> tokens, std::optional<uint32_t> unk_id, bool byte_fallback);

  Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const override;
  std::optional<uint32_t> id_of(std::string_view token) const override;
  std::optional<std::string_view> token_of(uint32_t id) const override;
  size_t vocab_size() const override { return scores_.size(); }

  double score_of(uint32_t id) const { return scores_[id]; }  // Requires: id < vocab_size().
  std::optional<uint32_t> unk_id() const { return unk_id_; }
  double unk_score() const { return unk_score_; }
  bool byte_fallback() const { return byte_fallback_; }

 private:
  // The best way to cut the text up to here ends with token `id`, which starts at `start`.
  struct BestEnd {
    uint32_t id = 0;
    double score = 0.0;
    std::optional<size_t> start;
  };

  Result<std::vector<BestEnd>> best_ends(std::string_view piece) const;
  Status emit(std::string_view part, std::vector<uint32_t>& ids) const;

  std::string text_;              // All tokens, one behind the other,
  std::vector<uint64_t> starts_;  // and where each begins; one more at the end.
  std::vector<double> scores_;
  ByteTrie trie_;
  std::vector<uint32_t>
      id_at_;  // By the node of the trie where the token ends, else kNoToken. Of a token that stands
               // twice, the last one counts.
  std::optional<uint32_t> unk_id_;
  double unk_score_;
  bool byte_fallback_;
};

}  // namespace lmemo::tokenizer
