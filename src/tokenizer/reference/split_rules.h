// How found delimiters cut a text: HuggingFace's split behaviours.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tokenizer/reference/regex.h"

namespace lmemo::tokenizer {

// In the order of kSplitBehaviors.
enum class SplitBehavior : uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

inline const std::vector<std::string_view> kSplitBehaviors = {"Removed", "Isolated", "MergedWithPrevious",
                                                              "MergedWithNext", "Contiguous"};

// "the-final--cut" at "-":  removed              the final cut
//                           isolated             the - final - - cut
//                           merged_with_previous the- final- - cut
//                           merged_with_next     the -final - -cut
//                           contiguous           the - final -- cut
// `is_inverted` swaps delimiters and the rest. What comes back may be empty; the caller drops that.
std::vector<Match> cuts_of(const std::vector<Match>& delimiters, size_t text_length, bool is_inverted,
                           SplitBehavior behavior);

// Each character for which it holds.
std::vector<Match> characters_where(std::u32string_view text, const std::function<bool(char32_t)>& holds);

}  // namespace lmemo::tokenizer
