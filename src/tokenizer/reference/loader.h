// From the text of a tokenizer.json to its parts, and to the plain engine.
#pragma once

#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

#include "lmemo/tokenizer.h"
#include "tokenizer/reference/pipeline.h"

namespace lmemo::tokenizer {

struct LoadedFile {
  Parts parts;          // Do not need the text any more.
  nlohmann::json tree;  // What the file says, but for the vocabulary and the merges.
};
Result<LoadedFile> load_file(std::string_view json);

// Always the reference engine, whatever Tokenizer::from_json chooses.
Result<std::shared_ptr<const Tokenizer>> make_reference(std::string_view json);

}  // namespace lmemo::tokenizer
