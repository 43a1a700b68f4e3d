// The second step of a tokenizer: cuts normalised text into the pieces that the model sees one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

struct Piece {
  std::string text;
  bool starts_text = false;  // Begins at the start of the original input (for prepend_scheme "first").
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(std::vector<Piece>& pieces) const = 0;
};

// null json → null pointer (no pre-tokenizer). An unknown type or option is refused by name and JSON path.
Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const nlohmann::json& json,
                                                         const std::string& where);

}  // namespace lmemo::tokenizer
