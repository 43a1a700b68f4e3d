// Digits before another splitter (StarCoder): what lies between numbers is a text of its own to it.
#pragma once

#include <memory>

#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

// Sets every character apart that Digits takes for one. Requires: `inner` leaves a single character whole.
std::unique_ptr<PieceSplitter> make_digits_splitter(std::unique_ptr<PieceSplitter> inner);

}  // namespace lmemo::tokenizer
