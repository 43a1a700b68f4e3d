// Any pattern of a Split before ByteLevel, on UTF-8: what the hand-written splitters of split_pattern.h do not know.
//
// The steps are those of the reference's regex, tried in the same order; a character is looked up once for all sets of
// the pattern, and nothing is copied.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

// Cuts at each match and between them (behavior Isolated). Null if a match depends on what lies before it, may be empty,
// or needs more sets than there is room for: then only the reference can do it.
// Pieces are cut further at free `borders`, if that is not null.
std::unique_ptr<PieceSplitter> make_regex_splitter(std::string_view utf8_pattern,
                                                   std::shared_ptr<const CharBorders> borders);

}  // namespace lmemo::tokenizer
