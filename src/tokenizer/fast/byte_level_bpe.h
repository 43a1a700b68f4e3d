// Byte-level BPE on the bytes themselves: no text is rewritten into GPT-2's alphabet.
#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string_view>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/merge_encoder.h"
#include "tokenizer/fast/piece_model.h"
#include "tokenizer/reference/bpe.h"

namespace lmemo::tokenizer {

// Tokens that only ever come out as a whole piece, by their bytes.
class WholeTokens {
 public:
  void add(std::string_view token, uint32_t id) {
    ids_.emplace(token, id);
    filter_.add(token);
  }
  bool contains(std::string_view piece) const { return filter_.may_have(piece) && ids_.contains(piece); }
  std::optional<uint32_t> find(std::string_view piece) const {
    if (!contains(piece)) return std::nullopt;
    return ids_.find(piece)->second;
  }

 private:
  TextMap<uint32_t> ids_;
  EndsFilter filter_;
};

class ByteLevelBpe final : public PieceModel {
 public:
  // Null if the model is one that only the reference can do: it has options that need characters, or its
  // merges are in no order of time.
  // The reference has to outlive it.
  static std::unique_ptr<ByteLevelBpe> make(const Bpe& bpe, std::vector<KnownPiece>& known);

  Status encode(std::string_view piece, IdBuffer& out) const override;
  Status encode_short(std::span<const std::string_view> pieces, IdBuffer& out,
                      IdRange* ranges) const override;

  // Where pieces may be cut further; null: nowhere.
  std::shared_ptr<const CharBorders> borders() const { return missing_.any() ? nullptr : borders_; }

 private:
  ByteLevelBpe(const Bpe& reference, const std::bitset<256>& missing, MergeEncoder merges,
               std::shared_ptr<const CharBorders> borders, WholeTokens wholes)
      : reference_(reference),
        missing_(missing),
        merges_(std::move(merges)),
        borders_(std::move(borders)),
        wholes_(std::move(wholes)) {}

  bool lacks_byte_of(std::string_view piece) const;

  const Bpe& reference_;
  const std::bitset<256> missing_;  // Bytes that are no tokens.
  const MergeEncoder merges_;
  const std::shared_ptr<const CharBorders> borders_;
  const WholeTokens wholes_;  // For ignore_merges: tokens that merges do not lead to, by their bytes.
};

}  // namespace lmemo::tokenizer
