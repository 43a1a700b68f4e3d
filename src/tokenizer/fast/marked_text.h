// Metaspace, alone or behind WhitespaceSplit: words are marked at their front, and cut there.
//
// The mark is one byte here, a space: text between marks has none, and more pieces are short enough for the table. The
// model has to know it (TrieUnigram does).
#pragma once

#include <memory>
#include <string>

#include "tokenizer/fast/piece_splitter.h"
#include "tokenizer/fast/text_rewriter.h"

namespace lmemo::tokenizer {

struct MarkedTextOptions {
  char32_t replacement;        // What the file marks words with.
  bool splits_at_white_space;  // WhitespaceSplit comes before.
  bool marks_start;            // prepend_scheme "always"; else "never".
};

// Null if it cannot be done this way.
std::unique_ptr<TextRewriter> make_marked_text(const MarkedTextOptions& options);

// Cuts before each mark.
std::unique_ptr<PieceSplitter> make_mark_splitter();

}  // namespace lmemo::tokenizer
