#include "cli/completions.h"

namespace lmemo::cli {
namespace {

void visit_below(const std::string& path, const CommandSpec& command,
                 const std::function<void(const std::string&, const CommandSpec&)>& visit) {
  visit(path, command);
  for (const CommandSpec& subcommand : command.subcommands)
    visit_below(path.empty() ? subcommand.name : path + " " + subcommand.name, subcommand, visit);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The bash commands that offer values of this type; nothing for values that only the user can know.
std::string offer(ValueType type, const std::vector<std::string>& choices) {
  switch (type) {
    case ValueType::file: return "_lmemo_files -f";
    case ValueType::directory: return "_lmemo_files -d";
    case ValueType::choice: return "COMPREPLY=($(compgen -W '" + joined(choices) + "' -- \"$cur\"))";
    default: return ":";
  }
}

std::string names_of(const OptionSpec& option, const std::string& separator) {
  return (option.short_name ? std::string("-") + option.short_name + separator : "") + "--" + option.name;
}

void add_value_cases(const std::string& path, const std::vector<OptionSpec>& options, std::string& script) {
  for (const OptionSpec& option : options) {
    if (option.type == ValueType::none) continue;
    const std::string prefix = path == "*" ? "*:" : "'" + path + "':";
    std::string pattern = prefix + "--" + option.name;
    if (option.short_name) pattern += "|" + prefix + "-" + option.short_name;
    script += "    " + pattern + ") " + offer(option.type, option.choices) + "; return ;;\n";
  }
}

}  // namespace

void for_each_command(const CommandSpec& root,
                      const std::function<void(const std::string& path, const CommandSpec& command)>& visit) {
  visit_below("", root, visit);
}

std::string bash_completions(const CommandSpec& root) {
  std::string value_options, paths, value_cases, word_cases;
  std::string global_words;
  for (const OptionSpec& option : root.options) global_words += " " + names_of(option, " ");

  for_each_command(root, [&](const std::string& path, const CommandSpec& command) {
    for (const OptionSpec& option : command.options)
      if (option.type != ValueType::none)
        value_options += (value_options.empty() ? "" : "|") + names_of(option, "|");
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + ("'" + path + "'");
    if (!path.empty()) add_value_cases(path, command.options, value_cases);

    std::string words;
    for (const CommandSpec& subcommand : command.subcommands) words += " " + subcommand.name;
    std::string option_words;
    if (!path.empty())
      for (const OptionSpec& option : command.options) option_words += " " + names_of(option, " ");
    std::string plain = "COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\"))";
    if (command.subcommands.empty()) {
      const bool has_values = !command.positionals.empty();
      plain = has_values ? offer(command.positionals.front().type, command.positionals.front().choices) : ":";
    }
    word_cases += "    '" + path + "')\n      options='" + option_words + global_words +
                  "'\n      if [[ $cur != -* ]]; then " + plain + "; return; fi ;;\n";
  });
  add_value_cases("*", root.options, value_cases);

  return R"(# bash completion for lmemo. Use it: source <(lmemo completions bash)
_lmemo_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}

_lmemo() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word skip='' options='' i
  COMPREPLY=()
  # bash splits --color=auto into three words.
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]] && ((COMP_CWORD >= 2)); then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi

  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then skip=1; continue; fi
    if [[ -n $skip ]]; then skip=''; continue; fi
    case $word in
    )" + value_options +
         R"() skip=1; continue ;;
    -*) continue ;;
    esac
    word=${path:+$path }$word
    case $word in
    )" + paths +
         R"() path=$word ;;
    esac
  done

  case "$path:$prev" in
)" + value_cases +
         R"(  esac

  case $path in
)" + word_cases +
         R"(  esac
  COMPREPLY=($(compgen -W "$options" -- "$cur"))
}

complete -F _lmemo lmemo
)";
}

}  // namespace lmemo::cli
