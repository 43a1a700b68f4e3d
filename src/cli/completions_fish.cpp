#include "cli/completions.h"

namespace lmemo::cli {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string words_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string value_flags(ValueType type, const std::vector<std::string>& choices) {
  switch (type) {
    case ValueType::none: return "";
    case ValueType::file: return " -r -F";
    case ValueType::directory: return " -x -a '(__fish_complete_directories)'";
    case ValueType::choice: return " -x -a " + quoted(words_of(choices));
    default: return " -x";
  }
}

std::string option_line(const std::string& condition, const OptionSpec& option) {
  std::string line = "complete -c lmemo" + condition;
  if (option.short_name) line += std::string(" -s ") + option.short_name;
  return line + " -l " + option.name + value_flags(option.type, option.choices) + " -d " +
         quoted(option.help) + "\n";
}

}  // namespace

std::string fish_completions(const CommandSpec& root) {
  std::string value_options, paths, lines;
  for_each_command(root, [&](const std::string& path, const CommandSpec& command) {
    for (const OptionSpec& option : command.options) {
      if (option.type == ValueType::none) continue;
      value_options += " --" + option.name;
      if (option.short_name) value_options += std::string(" -") + option.short_name;
    }
    if (!path.empty()) paths += " " + quoted(path);

    const std::string condition = " -n \"__lmemo_path_is " + quoted(path) + "\"";
    for (const CommandSpec& subcommand : command.subcommands)
      lines += "complete -c lmemo" + condition + " -a " + subcommand.name + " -d " +
               quoted(subcommand.summary) + "\n";
    if (command.subcommands.empty() && !command.positionals.empty()) {
      const PositionalSpec& positional = command.positionals.front();
      const std::string flags = value_flags(positional.type, positional.choices);
      if (positional.type != ValueType::text) lines += "complete -c lmemo" + condition + flags + "\n";
    }
    if (!path.empty())
      for (const OptionSpec& option : command.options) lines += option_line(condition, option);
  });
  for (const OptionSpec& option : root.options) lines += option_line("", option);

  return R"(# fish completion for lmemo. Use it: lmemo completions fish | source
function __lmemo_path_is
  set -l path
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip = 1
      set skip 0
      continue
    end
    if contains -- $word)" +
         value_options + R"(
      set skip 1
    else if not string match -q -- '-*' $word
      set -l longer (string trim "$path $word")
      contains -- $longer)" +
         paths + R"(; and set path $longer
    end
  end
  test "$path" = "$argv[1]"
end

complete -c lmemo -f
)" + lines;
}

}  // namespace lmemo::cli
