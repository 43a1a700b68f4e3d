// Which tokenizer.json is done quickly, and how.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/fast/fast_tokenizer.h"

namespace lmemo::tokenizer {

// Nothing if the reference has to do it. `file` is the whole tokenizer.json (only its small parts are looked at),
// `parts` what was made of it. `use_simd` false: without special instructions, for tests.
std::optional<FastPlan> fast_plan_of(const nlohmann::json& file, const Parts& parts, bool use_simd = true);

}  // namespace lmemo::tokenizer
