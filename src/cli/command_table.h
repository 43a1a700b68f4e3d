// What a command takes and does, as data. The parser, the help and the completions of every shell are made from
// these tables and from nothing else.
//
// To add a command: write a function that returns its CommandSpec in src/cli/commands/, declare it in
// commands/all_commands.h and add it to the list in commands/all_commands.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lmemo::cli {

enum class ValueType {
  none,  // A switch.
  text,
  file,  // Completed with file names.
  directory,
  byte_count,  // 2GiB
  duration,    // 30d
  count,       // 20
  choice,      // One of `choices`.
};

struct OptionSpec {
  std::string name = {};  // Without the dashes.
  char short_name = 0;
  ValueType type = ValueType::none;
  std::string value_name = {};  // For the help: DIR, SIZE, …
  std::string help = {};
  std::string default_text = {};  // Shown in the help; what the command does without the option.
  std::vector<std::string> choices = {};
  bool is_required = false;
  bool is_list = false;  // May be given several times, and takes the plain words behind its value as well.
};

struct PositionalSpec {
  std::string name = {};
  std::string help = {};
  ValueType type = ValueType::text;
  std::vector<std::string> choices = {};
  bool is_required = true;
  bool is_repeated = false;  // Takes all that is left; only the last one may.
};

struct Example {
  std::string line;
  std::string meaning;
};

struct ExitMeaning {
  int code;
  std::string meaning;
};

struct CommandContext;

struct CommandSpec {
  std::string name = {};
  std::string group = {};  // The heading under which `lmemo --help` lists it; commands without one come last.
  std::string summary = {};  // One line, an imperative, no full stop.
  std::string details = {};  // Paragraphs for the help, one line each.
  std::vector<PositionalSpec> positionals = {};
  std::vector<OptionSpec> options = {};
  std::vector<Example> examples = {};
  std::vector<ExitMeaning> exit_meanings = {};  // Besides 0, 1, 2 and 130, which every command has.
  std::function<int(CommandContext&)> run = {};

  // A group has these instead of `run`.
  std::vector<CommandSpec> subcommands = {};
  std::string default_subcommand = {};  // What the group does when no verb is given; may be empty.

  // Of a group: the environment variable that names its store, before LMEMO_STORE does; may be empty.
  std::string store_variable = {};

  bool needs_settings = true;        // If not, it runs even where a settings file is broken.
  bool takes_raw_arguments = false;  // Every word after the name is passed on as it is.
};

inline const CommandSpec* find_subcommand(const CommandSpec& group, std::string_view name) {
  for (const CommandSpec& command : group.subcommands)
    if (command.name == name) return &command;
  return nullptr;
}

}  // namespace lmemo::cli
