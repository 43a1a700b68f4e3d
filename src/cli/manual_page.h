// The manual page lmemo(1), from the same tables as the help.
#pragma once

#include <string>

#include "cli/command_table.h"

namespace lmemo::cli {

std::string manual_page(const CommandSpec& root, const std::string& version);

}  // namespace lmemo::cli
