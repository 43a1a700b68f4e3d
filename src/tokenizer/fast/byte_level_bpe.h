// Byte-level BPE on the bytes themselves: no text is rewritten into GPT-2's alphabet.
#pragma once

#include <memory>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/merge_encoder.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/reference/bpe.h"

namespace lmemo::tokenizer {

class ByteLevelBpe final : public PieceModel {
 public:
  // Null if the model is one that only the reference can do: it lacks bytes, has options that need characters, or its
  // merges are in no order of time.
  static std::unique_ptr<ByteLevelBpe> make(const Bpe& bpe, std::vector<KnownPiece>& known);

  Status encode(std::string_view piece, IdBuffer& out) const override;

  // Where pieces may be cut further.
  std::shared_ptr<const CharBorders> borders() const { return borders_; }

 private:
  ByteLevelBpe(MergeEncoder merges, std::shared_ptr<const CharBorders> borders, TextMap<uint32_t> wholes)
      : merges_(std::move(merges)), borders_(std::move(borders)), wholes_(std::move(wholes)) {}

  const MergeEncoder merges_;
  const std::shared_ptr<const CharBorders> borders_;
  const TextMap<uint32_t> wholes_;  // For ignore_merges: tokens that merges do not lead to, by their bytes.
};

}  // namespace lmemo::tokenizer
