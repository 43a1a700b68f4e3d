// BertPreTokenizer: white space goes, each punctuation character is a piece, and so is what lies between.
#pragma once

#include <memory>

#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

std::unique_ptr<PieceSplitter> make_word_splitter();

}  // namespace lmemo::tokenizer
