// Texts of other forms as UTF-8.
#pragma once

#include <string_view>
#include <vector>

#include "lmemo/tokenizer.h"

namespace lmemo::tokenizer {

// Where converted text lies; kept for the next one.
using TextBuffer = std::vector<char, UnwrittenAllocator<char>>;

// The code point of unit `at`. Requires: not UTF-8.
uint32_t unit_at(const SourceText& text, size_t at);
// Where the first `unit` from `at` on stands; unit_count if there is none. Requires: unit < 0x80.
size_t find_unit(const SourceText& text, char unit, size_t at);

// The units from `begin` to `end` as UTF-8, in `buffer` unless they are that already. What was UTF-8 is not looked at;
// of other forms, half a surrogate pair is an error.
Result<std::string_view> utf8_of(const SourceText& text, size_t begin, size_t end, TextBuffer& buffer);

}  // namespace lmemo::tokenizer
