#include "cli/manual_page.h"

#include "cli/completions.h"
#include "cli/help_text.h"

namespace lmemo::cli {
namespace {

// As roff text: a backslash and a leading dot or quote mean something there, and a hyphen is an option's only if
// it is said to be.
std::string roff(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    at_line_start = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string item(const std::string& term, const std::string& text) {
  return ".TP\n.B " + roff(term) + "\n" + roff(text) + "\n";
}

std::string value_of(const OptionSpec& option) {
  if (option.type == ValueType::none) return "";
  if (option.type != ValueType::choice) return " " + option.value_name;
  std::string choices;
  for (const std::string& choice : option.choices) choices += (choices.empty() ? " " : "|") + choice;
  return choices;
}

std::string items_of(const std::vector<OptionSpec>& options) {
  std::string text;
  for (const OptionSpec& option : options) {
    const std::string letter = option.short_name ? std::string("-") + option.short_name + ", " : "";
    const std::string ending = option.default_text.empty() ? "" : " [default: " + option.default_text + "]";
    text += item(letter + "--" + option.name + value_of(option), option.help + ending);
  }
  return text;
}

std::string section_of(const std::string& path, const CommandSpec& command) {
  std::string text = ".SS " + roff(usage_line(command, path)) + "\n" + roff(command.summary) + ".\n";
  if (!command.details.empty()) text += ".PP\n" + roff(command.details) + "\n";
  for (const PositionalSpec& positional : command.positionals) text += item(positional.name, positional.help);
  text += items_of(command.options);
  for (const Example& example : command.examples)
    text += ".PP\n.EX\n" + roff(example.line) + "\n.EE\n" + roff(example.meaning) + "\n";
  for (const ExitMeaning& meaning : command.exit_meanings)
    text += ".PP\nExit code " + std::to_string(meaning.code) + ": " + roff(meaning.meaning) + ".\n";
  return text;
}

}  // namespace

std::string manual_page(const CommandSpec& root, const std::string& version) {
  std::string text = ".TH LMEMO 1 \"\" \"lmemo " + version + "\"\n.SH NAME\nlmemo \\- " + roff(root.summary) +
                     "\n.SH SYNOPSIS\n.B lmemo\nCOMMAND [OPTIONS]\n.SH OPTIONS\n" + items_of(root.options) +
                     ".SH COMMANDS\n";
  for_each_command(root, [&](const std::string& path, const CommandSpec& command) {
    if (!path.empty() && command.subcommands.empty()) text += section_of("lmemo " + path, command);
  });
  text +=
      ".SH EXIT STATUS\n0 fine, 1 failed, 2 misuse, 3 finished with gaps, 4 damage found, 130 interrupted.\n"
      ".SH ENVIRONMENT\n" +
      item("LMEMO_STORE", "the directory of the store, if --store is not given") +
      item("LMEMO_ACTIVATIONS_STORE", "the same for lmemo activations, before LMEMO_STORE") +
      item("NO_COLOR", "no colour, whatever it is set to") + ".SH FILES\n" +
      item("lmemo.toml",
           "settings, found from the working directory upward; lmemo config shows what is in force") +
      item("$XDG_CACHE_HOME/lmemo", "the store, if nothing else is said");
  return text;
}

}  // namespace lmemo::cli
