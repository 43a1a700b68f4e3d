// The help of a command, made from its table.
#pragma once

#include <string>

#include "cli/command_table.h"

namespace lmemo::cli {

// `path` is what the user types: "lmemo config get". `root` holds the global options.
std::string help_text(const CommandSpec& root, const CommandSpec& command, const std::string& path,
                      size_t columns);

// "lmemo prune --older-than AGE [OPTIONS]"
std::string usage_line(const CommandSpec& command, const std::string& path);

}  // namespace lmemo::cli
