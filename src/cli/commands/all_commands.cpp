#include "cli/commands/all_commands.h"

#include "cli/command_context.h"

namespace lmemo::cli {
namespace {

std::vector<OptionSpec> global_options() {
  return {
      {.name = "store",
       .type = ValueType::directory,
       .value_name = "DIR",
       .help = "the store; else LMEMO_STORE, the settings, or $XDG_CACHE_HOME/lmemo",
       .default_text = "~/.cache/lmemo"},
      {.name = "json", .help = "one JSON object on standard output"},
      {.name = "quiet", .short_name = 'q', .help = "ids and paths only, no notes, no progress"},
      {.name = "color",
       .type = ValueType::choice,
       .value_name = "WHEN",
       .help = "when to use colour",
       .default_text = "auto",
       .choices = {"auto", "always", "never"}},
      {.name = "config",
       .type = ValueType::file,
       .value_name = "FILE",
       .help = "settings file instead of the lmemo.toml found upward"},
      {.name = "help", .short_name = 'h', .help = "show this help"},
      {.name = "version", .short_name = 'V', .help = "show the version"},
  };
}

CommandSpec from_outside(const ExternalCommand& external) {
  CommandSpec command;
  command.name = external.name;
  command.summary = external.summary;
  command.takes_raw_arguments = true;
  command.needs_settings = false;
  command.run = [run = external.run](CommandContext& context) {
    return run(context.arguments.positionals(), context.environment);
  };
  return command;
}

}  // namespace

CommandSpec root_command(const CliEnvironment& environment) {
  CommandSpec root;
  root.name = "lmemo";
  root.summary = "never compute twice what a language-model workflow already computed";
  root.options = global_options();
  root.exit_meanings = {{kExitGaps, "finished with gaps"}, {kExitDamage, "damage found"}};
  const auto add = [&](const std::string& group, std::vector<CommandSpec> commands) {
    for (CommandSpec& command : commands) {
      command.group = group;
      root.subcommands.push_back(std::move(command));
    }
  };
  add("Computed once", chunks_commands());
  add("Computed once", dataset_commands());
  add("Computed once", sections_commands());
  add("Computed once", forward_commands());
  add("Computed once", activation_commands());
  add("Tokenizer", tokenizer_commands());
  add("The store", show_commands());
  add("The store", report_commands());
  add("The store", verify_commands());
  add("The store", space_commands());
  add("The store", explain_commands());
  add("The store", inspect_commands());
  add("The store", metrics_commands());
  add("lmemo itself", demo_commands());
  add("lmemo itself", config_commands());
  add("lmemo itself", completions_commands());
  for (const ExternalCommand& external : environment.external_commands)
    root.subcommands.push_back(from_outside(external));
  return root;
}

}  // namespace lmemo::cli
