// Asks before something is removed. Never asks where nobody can answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_context.h"

namespace lmemo::cli {

// What a destructive command offers: --dry-run and --yes.
std::vector<OptionSpec> confirmation_options();

// nullopt: go ahead. Else the exit code to end with; what had to be said was said.
// Requires: the caller has listed what would be removed, and has dealt with --dry-run.
std::optional<int> ask_to_go_ahead(CommandContext& context, const std::string& question);

}  // namespace lmemo::cli
