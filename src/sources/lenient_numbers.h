// Numbers that Python's json takes and simdjson does not: NaN, Infinity, -Infinity, and those that fit in no 64 bits.
// They may stand beside the field that is wanted, which is a text, so their value does not matter.
#pragma once

#include <string_view>
#include <vector>

namespace lmemo {

// Writes the line with each such number as 0 into `copy`. False if there is none: nothing is gained by parsing again.
bool replace_odd_numbers(std::string_view line, std::vector<char>& copy);

}  // namespace lmemo
