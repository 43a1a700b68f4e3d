// The reference's steps, for a tokenizer.json that no quick plan exists for, with pieces looked up in a table before the
// model is asked: what a model makes of a piece depends on nothing but its text.
#pragma once

#include "tokenizer/fast/long_piece_table.h"
#include "tokenizer/fast/piece_table.h"
#include "tokenizer/reference/pipeline.h"

namespace lmemo::tokenizer {

class RememberingTokenizer final : public ReferenceTokenizer {
 public:
  explicit RememberingTokenizer(Parts parts);

  Status save_pieces(const std::filesystem::path& path) const override;
  Result<size_t> load_pieces(const std::filesystem::path& path) const override;

 private:
  Status append_ids(std::string_view piece, std::vector<uint32_t>& ids) const override;

  mutable PieceTable table_;  // Both take care of their own threads.
  mutable LongPieceTable long_table_;
};

}  // namespace lmemo::tokenizer
