// The third step of a tokenizer: one piece of text to token ids. Models are plain here; `fast/` has the quick ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

class Model {
 public:
  virtual ~Model() = default;

  // Appends the ids of the piece. Requires: well-formed UTF-8. An error if the model lacks a token for something
  // unknown, where HuggingFace raises as well.
  virtual Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const = 0;

  virtual std::optional<uint32_t> id_of(std::string_view token) const = 0;
  virtual std::optional<std::string_view> token_of(uint32_t id) const = 0;
  virtual size_t vocab_size() const = 0;
  virtual uint64_t id_limit() const { return vocab_size(); }  // Every id is below.
};

struct ModelTables;

// From the "model" of a tokenizer.json: its small parts, and the tables that stand apart. `where` is its place, for
// errors.
Result<std::unique_ptr<Model>> make_model(const nlohmann::json& json, ModelTables& tables,
                                          const std::string& where);

}  // namespace lmemo::tokenizer
