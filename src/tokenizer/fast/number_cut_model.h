// Digits, then Split at [0-9][0-9][0-9], behind ByteLevel (Falcon). Every byte is a character there, and some halves of
// characters are numbers (the last byte of "ò" is "²"): so pieces are cut between bytes, which is left to the model.
#pragma once

#include <memory>

#include "tokenizer/fast/piece_model.h"

namespace lmemo::tokenizer {

// Requires: `inner` takes any bytes.
std::unique_ptr<PieceModel> make_number_cut_model(std::unique_ptr<PieceModel> inner);

// Leaves out what such a model may cut.
void drop_known_numbers(std::vector<KnownPiece>& known);

}  // namespace lmemo::tokenizer
