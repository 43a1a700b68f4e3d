// Reads JSON that a stranger wrote: bounded in depth and size, no key twice, numbers as serde_json reads them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

inline constexpr size_t kMaxJsonBytes = size_t{1} << 30;
inline constexpr size_t kMaxJsonDepth = 100;  // serde_json, below HuggingFace's reader, stops at 128.

// An error names the byte or the key where the trouble is.
Result<nlohmann::json> parse_json(std::string_view text);

// The value of a JSON number with a fraction or an exponent as serde_json computes it, which is now and then one
// unit in the last place off the nearest: Unigram compares sums of such values. Requires: a well-formed number.
double serde_number(std::string_view digits);

// The same text for the same value, whatever the order of keys was.
std::string canonical_text(const nlohmann::json& json);

}  // namespace lmemo::tokenizer
