// Unigram over a double-array trie, for text that is marked as in marked_text.h. The sums are made in the reference's
// order: the same doubles, and the same winner where two are equal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/double_array_trie.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/reference/unigram.h"

namespace lmemo::tokenizer {

class TrieUnigram final : public PieceModel {
 public:
  // `replacement` is what stands in tokens where pieces have a space. Null if only the reference can do it: it has no
  // token for the unknown, or marks may come out as bytes.
  static std::unique_ptr<TrieUnigram> make(const Unigram& reference, std::string_view replacement);

  Status encode(std::string_view piece, IdBuffer& out) const override;

 private:
  // The best way to cut the text up to here ends with token `id`, which starts at `start`.
  struct BestEnd {
    double score;
    uint32_t start, id;
  };

  TrieUnigram() = default;
  void find_best_ends(std::string_view piece, BestEnd* best) const;
  // Appends, last byte first.
  void append_unknown(std::string_view run, IdBuffer& out) const;

  DoubleArrayTrie trie_;  // To ids.
  std::vector<double> scores_;
  std::vector<uint32_t> byte_ids_;  // For byte_fallback: kNone where there is no token. Else empty.
  uint32_t unk_id_ = 0;
  double unk_score_ = 0;
};

}  // namespace lmemo::tokenizer
