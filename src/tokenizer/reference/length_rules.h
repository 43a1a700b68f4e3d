// "truncation" and "padding" of a tokenizer.json: how long a sequence may and must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"
#include "lmemo/tokenizer.h"

namespace lmemo::tokenizer {

struct Truncation {
  uint64_t max_length = 0;  // With the special tokens.
  bool from_left = false;

  // `room`: ids that the post-processor is going to add.
  void apply(std::vector<uint32_t>& ids, size_t room) const;
};

// `added_count` of the post-processor; refuses what leaves no room for it, and what HuggingFace fails on.
Result<std::optional<Truncation>> truncation_in(const nlohmann::json& json, size_t added_count,
                                                const std::string& where);

struct Padding {
  std::optional<uint64_t> fixed_length;  // None: to the longest of a batch.
  uint64_t multiple_of = 0;              // 0 and 1: any length.
  uint32_t pad_id = 0;
  bool on_left = false;

  uint64_t target(uint64_t longest) const;
  void apply(std::vector<uint32_t>& ids, uint64_t target) const;
};

Result<std::optional<Padding>> padding_in(const nlohmann::json& json, const std::string& where);

// What holds for one call: the options', else the file's.
struct LengthRules {
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
};

// `added_count`: special tokens that this call adds.
Result<LengthRules> length_rules_for(const EncodeOptions& options, const std::optional<Truncation>& of_file,
                                     const std::optional<Padding>& padding_of_file, size_t added_count);

}  // namespace lmemo::tokenizer
