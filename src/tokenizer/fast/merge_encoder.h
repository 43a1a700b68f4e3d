// Byte pair encoding without merging: the longest token first, checked against its neighbour.
//
// A row of tokens is what merging gives if and only if merging leaves every two neighbours alone: up to the first
// merge that crosses a border, what happens on both sides of it is what happens to these two tokens by themselves.
// So the text is walked from left to right, the longest token is taken whose border to the one before holds, and
// where none does, one step is taken back. At each place there is one row at most, so no place is tried twice.
//
// Whether a border holds is read off how its two tokens were made. Tokens that their own merges do not reach never
// come out, and are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/double_array_trie.h"
#include "tokenizer/fast/id_buffer.h"

namespace lmemo::tokenizer {

class MergeEncoder {
 public:
  static constexpr uint32_t kNone = DoubleArrayTrie::kNone;

  struct Token {
    std::string_view text;
    uint32_t id;
  };
  struct Merge {
    uint32_t left, right, id;
    uint32_t rank;  // The lowest first, of equal ones the leftmost.
  };

  // `atoms` are what merging starts from (bytes or characters), all of them tokens. `merges`: each
  // pair once, ranks below 2^32 - 2, the text of the whole that of the parts; ids below `id_limit`. Nothing if an atom is also made by a merge.
  static std::optional<MergeEncoder> make(std::span<const Token> tokens, std::span<const uint32_t> atoms,
                                          std::span<const Merge> merges, uint32_t id_limit);

  bool is_reached(uint32_t id) const { return reached_[id]; }  // By merges, starting from atoms.

  bool has_token(std::string_view text) const { return trie_.find(text) != kNone; }  // Of those reached.

  // Appends the ids. Requires: the text is made of atoms.
  void encode(std::string_view text, IdBuffer& out) const;

 private:
  struct Made {
    uint32_t byte_count = 0;
    uint32_t left = 0, right = 0;  // Of which two tokens.
    uint32_t turn = 0;             // 1 + rank of the merge that does it; 0 for an atom.
    uint32_t time = 0;             // When: the latest turn of all merges that lead to it.
    uint32_t prefix = kNone;       // The longest other token with which this one begins.
  };
  struct PairRank {
    uint64_t pair;  // kNoPair: free.
    uint32_t rank;
  };

  MergeEncoder() = default;
  bool find_makings(std::span<const uint32_t> atoms, std::span<const Merge> merges);
  void index_merges(std::span<const Merge> merges);
  uint32_t rank_of(uint32_t left, uint32_t right) const;
  bool border_holds(uint32_t left, uint32_t right, bool look_at_whole) const;
  uint32_t first_holding(uint32_t last, uint32_t token) const;
  class Memo;

  DoubleArrayTrie trie_;     // Of the tokens that can come out.
  TableVector<Made> made_;   // By id.
  std::vector<bool> reached_;
  TableVector<uint64_t> pair_filter_;  // One bit for each pair, by its hash: most pairs are no merge.
  TableVector<PairRank> pair_ranks_;
  unsigned pair_shift_ = 0;
};

}  // namespace lmemo::tokenizer
