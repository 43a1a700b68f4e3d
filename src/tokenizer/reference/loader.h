// From the text of a tokenizer.json to its parts, and to the plain engine.
#pragma once

#include <memory>
#include <string_view>

#include "lmemo/tokenizer.h"
#include "tokenizer/reference/pipeline.h"

namespace lmemo::tokenizer {

// The parts do not need the text any more.
Result<Parts> load_parts(std::string_view json);

// Always the reference engine, whatever Tokenizer::from_json chooses.
Result<std::shared_ptr<const Tokenizer>> make_reference(std::string_view json);

}  // namespace lmemo::tokenizer
