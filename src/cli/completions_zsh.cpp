#include <algorithm>

#include "cli/completions.h"

namespace lmemo::cli {
namespace {

// Inside '…' and inside the brackets of _arguments and _describe.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string action(ValueType type, const std::vector<std::string>& choices) {
  switch (type) {
    case ValueType::file: return "_files";
    case ValueType::directory: return "_files -/";
    case ValueType::choice: {
      std::string words;
      for (const std::string& choice : choices) words += (words.empty() ? "" : " ") + choice;
      return "(" + words + ")";
    }
    default: return " ";
  }
}

std::string option_line(const OptionSpec& option) {
  std::string tail = "[" + escaped(option.help) + "]";
  if (option.type != ValueType::none) {
    const std::string name = option.value_name.empty() ? option.name : option.value_name;
    tail += ":" + escaped(name) + ":" + action(option.type, option.choices);
  }
  const std::string equals = option.type == ValueType::none ? "" : "=";
  if (!option.short_name) return "    '--" + option.name + equals + tail + "' \\\n";
  const std::string both = std::string("-") + option.short_name + " --" + option.name;
  const std::string plus = option.type == ValueType::none ? "" : "+";
  return "    '(" + both + ")-" + option.short_name + plus + tail + "' \\\n    '(" + both + ")--" +
         option.name + equals + tail + "' \\\n";
}

std::string function_name(const std::string& path) {
  std::string name = path.empty() ? "_lmemo" : "_lmemo_" + path;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string command_function(const CommandSpec& root, const std::string& path, const CommandSpec& command) {
  std::string text = function_name(path) + "() {\n";
  std::string options;
  if (&command != &root)
    for (const OptionSpec& option : command.options) options += option_line(option);
  for (const OptionSpec& option : root.options) options += option_line(option);

  if (command.subcommands.empty()) {
    text += "  _arguments -s \\\n" + options;
    for (const PositionalSpec& positional : command.positionals)
      text += "    '" + std::string(positional.is_repeated ? "*" : "") + ":" + escaped(positional.name) +
              ":" + action(positional.type, positional.choices) + "' \\\n";
    return text + "    && return\n}\n\n";
  }
  text += "  local curcontext=$curcontext state line\n  local -a commands\n  _arguments -s -C \\\n" + options;
  text += "    '1:command:->command' \\\n    '*::argument:->argument' && return\n";
  text += "  case $state in\n  command)\n    commands=(\n";
  for (const CommandSpec& subcommand : command.subcommands)
    text += "      '" + subcommand.name + ":" + escaped(subcommand.summary) + "'\n";
  text += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const CommandSpec& subcommand : command.subcommands)
    text += "    " + subcommand.name + ") " +
            function_name(path.empty() ? subcommand.name : path + " " + subcommand.name) + " ;;\n";
  return text + "    esac ;;\n  esac\n}\n\n";
}

}  // namespace

std::string zsh_completions(const CommandSpec& root) {
  std::string text =
      "#compdef lmemo\n# zsh completion for lmemo. Use it: source <(lmemo completions zsh), after "
      "compinit.\n\n";
  for_each_command(root, [&](const std::string& path, const CommandSpec& command) {
    text += command_function(root, path, command);
  });
  // Autoloaded from $fpath the file is the body of _lmemo; sourced it has to register itself.
  return text + "if [[ $funcstack[1] == _lmemo ]]; then\n  _lmemo \"$@\"\nelse\n  compdef _lmemo lmemo\nfi\n";
}

}  // namespace lmemo::cli
