// The first step of a tokenizer: rewrites the text (case, Unicode forms, accents, blanks) before it is cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string normalize(std::string_view utf8) const = 0;

  // Whether the result begins with what stood behind the start of the text, because the start was dropped (Strip …).
  // HuggingFace then does not take it for the start of the input: Metaspace with "first" prepends nothing.
  virtual bool drops_start(std::string_view utf8) const { return (void)utf8, false; }
};

// null json → null pointer (no normalizer). An unknown type or option is refused by name and JSON path.
Result<std::unique_ptr<Normalizer>> make_normalizer(const nlohmann::json& json, const std::string& where);

}  // namespace lmemo::tokenizer
