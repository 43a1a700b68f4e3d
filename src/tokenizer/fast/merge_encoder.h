// Byte pair encoding of one piece. A short one is merged as it is written down, the lowest rank first.
//
// A long one without merging: the longest token first, checked against its neighbour.
// A row of tokens is what merging gives if and only if merging leaves every two neighbours alone: up to the first
// merge that crosses a border, what happens on both sides of it is what happens to these two tokens by themselves.
// So the text is walked from left to right, the longest token is taken whose border to the one before holds, and
// where none does, one step is taken back. At each place there is one row at most, so no place is tried twice.
//
// Whether a border holds is read off how its two tokens were made. Tokens that their own merges do not reach never
// come out, and are left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/double_array_trie.h"
#include "tokenizer/fast/id_buffer.h"
#include "tokenizer/fast/merge_table.h"

namespace lmemo::tokenizer {

class MergeEncoder {
 public:
  static constexpr uint32_t kNone = DoubleArrayTrie::kNone;

  struct Token {
    std::string_view text;
    uint32_t id;
  };
  using Merge = MergeTable::Merge;

  // `atoms` are what merging starts from (bytes or characters), all of them tokens. `merges`: each
  // pair once, the text of the whole that of the parts; ids below `id_limit`. Nothing if an atom is also made by a merge,
  // or a rank is 2^26 or more.
  static std::optional<MergeEncoder> make(std::span<const Token> tokens, std::span<const uint32_t> atoms,
                                          std::span<const Merge> merges, uint32_t id_limit);

  bool is_reached(uint32_t id) const { return reached_[id]; }  // By merges, starting from atoms.

  bool has_token(std::string_view text) const { return trie_.find(text) != kNone; }  // Of those reached.

  static constexpr size_t kMaxMerged = 31;  // Bytes of a short piece.

  // Appends the ids. Requires: the text is made of atoms.
  void encode(std::string_view text, IdBuffer& out) const;
  // Appends the ids of all pieces, with gaps, and says where those of each are. Requires: 1 to kMaxMerged bytes each.
  void encode_short(std::span<const std::string_view> pieces, IdBuffer& out, IdRange* ranges) const;

 private:
  class ShortPiece;
  struct Made {
    uint32_t byte_count = 0;
    uint32_t left = 0, right = 0;  // Of which two tokens.
    uint32_t turn = 0;             // 1 + rank of the merge that does it; 0 for an atom.
    uint32_t time = 0;             // When: the latest turn of all merges that lead to it.
    uint32_t prefix = kNone;       // The longest other token with which this one begins.
  };
  MergeEncoder() = default;
  bool find_makings(std::span<const uint32_t> atoms, std::span<const Merge> merges,
                    std::span<const MergeTable::EndBytes> ends);
  void encode_by_borders(std::string_view text, IdBuffer& out) const;
  bool border_holds(uint32_t left, uint32_t right, const MergeTable::Border& border,
                    bool look_at_whole) const;
  uint32_t first_holding(uint32_t last, uint32_t token, const MergeTable::Border& border) const;
  class Memo;

  DoubleArrayTrie trie_;    // Of the tokens that can come out.
  TableVector<Made> made_;  // By id.
  std::vector<bool> reached_;
  MergeTable merges_;
  std::array<uint32_t, 256> byte_atoms_;  // Atoms of one byte; kNone where there is none.
  bool atoms_are_bytes_ = true;           // All of them.
};

}  // namespace lmemo::tokenizer
