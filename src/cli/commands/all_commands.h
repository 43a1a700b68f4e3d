// The list of commands. Each function lives in the file of the same name.
#pragma once

#include <vector>

#include "cli/cli.h"
#include "cli/command_table.h"

namespace lmemo::cli {

// lmemo itself: the global options, every command below, and what the environment adds.
CommandSpec root_command(const CliEnvironment& environment);

std::vector<CommandSpec> show_commands();     // show
std::vector<CommandSpec> report_commands();   // report
std::vector<CommandSpec> verify_commands();   // verify, repair
std::vector<CommandSpec> space_commands();    // prune, evict, compact, clear
std::vector<CommandSpec> explain_commands();  // explain
std::vector<CommandSpec> inspect_commands();  // inspect
std::vector<CommandSpec> tokenizer_commands();
std::vector<CommandSpec> chunks_commands();     // tokenize, tokenizer show, check
std::vector<CommandSpec> tokenizer_commands();  // tokenize, tokenizer show, check
std::vector<CommandSpec> sections_commands();   // sections sync, show, prune, clear
std::vector<CommandSpec> metrics_commands();
std::vector<CommandSpec> forward_commands();      // forward trace, show, clear
std::vector<CommandSpec> activation_commands();   // activations show, discover, evict, clear
std::vector<CommandSpec> dataset_commands();      // dataset build, check, ensure, run, show, clear
std::vector<CommandSpec> config_commands();       // config list, get, path
std::vector<CommandSpec> demo_commands();         // demo
std::vector<CommandSpec> completions_commands();  // completions, manual

}  // namespace lmemo::cli
