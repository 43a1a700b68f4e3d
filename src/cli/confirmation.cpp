#include "cli/confirmation.h"

namespace lmemo::cli {

std::vector<OptionSpec> confirmation_options() {
  return {
      {.name = "dry-run",
       .short_name = 'n',
       .help = "list and total what would be removed, and remove nothing"},
      {.name = "yes", .short_name = 'y', .help = "do not ask"},
  };
}

std::optional<int> ask_to_go_ahead(CommandContext& context, const std::string& question) {
  if (context.arguments.has("yes") || context.arguments.has("force")) return std::nullopt;
  if (!context.environment.input_is_terminal || !context.environment.ask)
    return fail(
        context,
        Error{ErrorCode::invalid_argument,
              "nothing was removed: there is no terminal to ask at; add --yes, or --dry-run to look first"});
  const std::optional<std::string> answer =
      context.environment.ask(question + " [y/N] ", context.environment.interrupted);
  if (context.was_interrupted()) return fail(context, Error{ErrorCode::interrupted, "at the question"});
  if (answer == "y" || answer == "Y" || answer == "yes") return std::nullopt;
  context.console.note("nothing was removed");
  return kExitFailed;
}

}  // namespace lmemo::cli
