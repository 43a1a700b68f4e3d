// Tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // From a list of tokens to a list of texts, which are joined in the end.
  virtual Result<std::vector<std::string>> decode(std::vector<std::string> tokens) const = 0;
};

// null json → null pointer: the tokens are joined with a space between them.
Result<std::unique_ptr<Decoder>> make_decoder(const nlohmann::json& json, const std::string& where);

}  // namespace lmemo::tokenizer
