// What code points become: lower case and the four normal forms, as HuggingFace has them (see properties.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

// Empty if it stays what it is.
std::u32string_view lowercase_of(char32_t code_point);

// NFD, or NFKD if `compatible`.
std::u32string decomposed(std::u32string_view text, bool compatible);

// What NFC and NFKC do after that.
std::u32string composed(std::u32string_view decomposed_text);

// False only if NFC leaves the character alone, whatever stands around it, as long as that holds for its neighbours: it
// is a starter, its own normal form, and joins nothing before it.
bool may_change_in_nfc(char32_t code_point);

// All that lower case or NFD may change.
std::vector<char32_t> mapped_code_points();

}  // namespace lmemo::tokenizer
