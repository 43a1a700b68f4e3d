// lmemo completions, lmemo manual: the command line described for shells and for man.
#include <string>
#include <vector>

#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/completions.h"
#include "cli/manual_page.h"

namespace lmemo::cli {
namespace {

int show(CommandContext& context, const char* name, const std::string& text) {
  if (!context.console.is_json) {
    context.console.out(text);
    return kExitFine;
  }
  JsonWriter json = begin_json(context);
  json.member(name, text);
  json.end_object();
  context.console.out(json);
  return kExitFine;
}

int run_completions(CommandContext& context) {
  const std::string shell = context.arguments.positional(0).value();
  if (shell == "bash") return show(context, "script", bash_completions(context.root));
  if (shell == "zsh") return show(context, "script", zsh_completions(context.root));
  return show(context, "script", fish_completions(context.root));
}

int run_manual(CommandContext& context) {
  return show(context, "page", manual_page(context.root, context.environment.version));
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

  CommandSpec manual;
  manual.name = "manual";
  manual.summary = "print the manual page";
  manual.examples = {{"lmemo manual | man -l -", "Read it."}};
  manual.needs_settings = false;
  manual.run = run_manual;
  return {completions, manual};
}

}  // namespace lmemo::cli
