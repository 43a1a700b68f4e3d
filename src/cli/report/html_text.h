// Text and numbers for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace lmemo::cli {

// For element content and attributes in double quotes. Control characters, which HTML forbids, become spaces; what is no
// UTF-8 becomes the replacement character.
std::string html(std::string_view text);
// At most so many bytes and then "…", never half a character.
std::string shortened(std::string_view text, size_t most_bytes);
// A coordinate: two decimals at most.
std::string coordinate(double value);
std::string percent_text(double share);

}  // namespace lmemo::cli
