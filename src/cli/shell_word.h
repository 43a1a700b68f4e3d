// A text as one word of a shell, so that a command which we name can be copied and run.
#pragma once

#include <string>
#include <string_view>

namespace lmemo::cli {

// As it is if no shell would take it apart, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace lmemo::cli
