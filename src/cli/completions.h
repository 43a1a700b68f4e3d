// Completion scripts for shells, made from the command tables. The scripts are complete in themselves: pressing Tab
// does not start lmemo.
#pragma once

#include <functional>
#include <string>

#include "cli/command_table.h"

namespace lmemo::cli {

std::string bash_completions(const CommandSpec& root);
std::string zsh_completions(const CommandSpec& root);
std::string fish_completions(const CommandSpec& root);

// Calls `visit` for the root (path "") and for every command below it (path "config get").
void for_each_command(const CommandSpec& root,
                      const std::function<void(const std::string& path, const CommandSpec& command)>& visit);

}  // namespace lmemo::cli
