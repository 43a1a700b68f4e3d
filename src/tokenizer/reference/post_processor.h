// The fourth step of a tokenizer: puts special tokens around the ids of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

using Ids = std::vector<uint32_t>;

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;

  // From a list of sequences to a list of sequences, which are joined in the end. One text is a list of one.
  virtual std::vector<Ids> process(std::vector<Ids> sequences, bool add_special_tokens) const = 0;

  // How many sequences come out if so many go in; an error if this processor cannot take so many.
  virtual Result<size_t> count_after(size_t sequences, bool add_special_tokens) const = 0;

  // How many ids a single text gains: what truncation leaves room for.
  virtual size_t added_count() const = 0;
};

// null json → null pointer. Refuses what would fail later, on a text.
Result<std::unique_ptr<PostProcessor>> make_post_processor(const nlohmann::json& json,
                                                           const std::string& where);

}  // namespace lmemo::tokenizer
