// lmemo completions: the script that teaches a shell to complete lmemo's words.
#include <string>
#include <vector>

#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/completions.h"

namespace lmemo::cli {
namespace {

int run_completions(CommandContext& context) {
  const std::string shell = context.arguments.positional(0).value();
  if (shell == "bash") context.console.out(bash_completions(context.root));
  if (shell == "zsh") context.console.out(zsh_completions(context.root));
  if (shell == "fish") context.console.out(fish_completions(context.root));
  return kExitFine;
}

}  // namespace

std::vector<CommandSpec> completions_commands() {
  CommandSpec completions;
  completions.name = "completions";
  completions.summary = "print the completion script for a shell";
  completions.positionals = {
      {.name = "SHELL", .help = "the shell", .type = ValueType::choice, .choices = {"bash", "zsh", "fish"}}};
  completions.examples = {{"source <(lmemo completions bash)", "In ~/.bashrc."},
                          {"source <(lmemo completions zsh)", "In ~/.zshrc, after compinit."},
                          {"lmemo completions fish > ~/.config/fish/completions/lmemo.fish", "Once."}};
  completions.needs_settings = false;
  completions.run = run_completions;
  return {completions};
}

}  // namespace lmemo::cli
