// UTF-8 to code points and back.
#pragma once

#include <string>
#include <string_view>

namespace lmemo::tokenizer {

// Requires: well-formed UTF-8. A byte that is not becomes U+FFFD, so that nothing is read out of bounds.
std::u32string code_points_of(std::string_view utf8);

// Requires: no surrogates.
std::string utf8_of(std::u32string_view code_points);

}  // namespace lmemo::tokenizer
