// SentencePiece-style BPE (Llama-2, Gemma): blanks are "▁", unknown characters become bytes.
//
// The text keeps its blanks here (marked_text.h); the tokens have them instead of "▁". Merges may reach over words, so
// the text is cut where no token has the two characters on both sides.
#pragma once

#include <array>
#include <bitset>
#include <memory>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/merge_encoder.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/fast/piece_splitter.h"
#include "tokenizer/reference/bpe.h"

namespace lmemo::tokenizer {

// "▁", which stands for a blank.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";
inline constexpr char32_t kBlankMarkChar = U'\u2581';

class SentenceBpe final : public PieceModel {
 public:
  // Null if the model is one that only the reference can do: without tokens for all bytes, with merges of them, with
  // blanks in tokens, without a token for the mark.
  static std::unique_ptr<SentenceBpe> make(const Bpe& bpe, std::vector<KnownPiece>& known);

  // Requires: no "▁" in the piece.
  Status encode(std::string_view piece, IdBuffer& out) const override;

  // `cuts_at_marks`: also before each blank.
  std::unique_ptr<PieceSplitter> splitter(bool cuts_at_marks) const;
  // ASCII characters that no token has behind a newline.
  std::bitset<128> line_starts() const { return ~borders_->has_pair['\n']; }

 private:
  struct Borders {
    CharBorders beyond_ascii;
    std::array<std::bitset<128>, 128> has_pair;  // Of two ASCII characters.
  };
  template <bool kCutsAtMarks>
  class Splitter;

  SentenceBpe(MergeEncoder merges, std::shared_ptr<const Borders> borders, std::array<uint32_t, 256> byte_ids)
      : merges_(std::move(merges)), borders_(std::move(borders)), byte_ids_(byte_ids) {}

  const MergeEncoder merges_;
  const std::shared_ptr<const Borders> borders_;
  const std::array<uint32_t, 256> byte_ids_;
};

}  // namespace lmemo::tokenizer
