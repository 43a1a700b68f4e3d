// A model of the reference behind the piece table, where no quicker one was written: only pieces that are met for the
// first time wait for it.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/fast/piece_model.h"
#include "tokenizer/reference/model.h"

namespace lmemo::tokenizer {

// For text that is marked as in marked_text.h: `replacement` is what stands in tokens where pieces have a space.
// Requires: `reference` outlives it and makes no more ids than a piece has characters.
std::unique_ptr<PieceModel> make_reference_model(const Model& reference, std::string replacement);

}  // namespace lmemo::tokenizer
