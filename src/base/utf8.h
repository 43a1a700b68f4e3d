// Well-formed UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lmemo {

// The length of the well-formed sequence at the front, 1 to 4; 0 if there is none. Refuses what is longer than its
// value needs, halves of surrogate pairs and values beyond U+10FFFF.
size_t utf8_length(std::string_view text);

// False if there is no such character.
bool append_utf8(std::string& text, uint32_t code_point);

}  // namespace lmemo
