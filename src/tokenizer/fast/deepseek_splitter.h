// The three Splits of DeepSeek (numbers by threes, Chinese and Japanese apart, then words), in one pass by hand.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

// Whether the steps before the last are these, letter by letter.
bool is_deepseek_split(const nlohmann::json& steps);

// Pieces are cut further at free `borders`, if that is not null.
std::unique_ptr<PieceSplitter> make_deepseek_splitter(std::shared_ptr<const CharBorders> borders);

}  // namespace lmemo::tokenizer
