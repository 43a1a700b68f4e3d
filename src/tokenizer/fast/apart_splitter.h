// Digits or Punctuation before another splitter (StarCoder, Falcon): what lies between such characters is a text of its
// own to it.
#pragma once

#include <memory>

#include "tokenizer/fast/piece_splitter.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {

enum class Apart : uint8_t { each, runs };  // A piece each, or those that follow one another in one.

// Sets the characters apart that have the flag. Requires: `inner` leaves such a piece whole.
std::unique_ptr<PieceSplitter> make_apart_splitter(CharacterFlag flag, Apart apart,
                                                   std::unique_ptr<PieceSplitter> inner);

}  // namespace lmemo::tokenizer
