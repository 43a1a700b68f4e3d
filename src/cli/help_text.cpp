#include "cli/help_text.h"

#include <algorithm>

#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

constexpr size_t kMaxColumns = 100;

// "-q, --quiet" or "    --store DIR"
std::string left_side(const OptionSpec& option) {
  std::string text = option.short_name ? std::string("-") + option.short_name + ", " : "    ";
  text += "--" + option.name;
  if (option.type == ValueType::choice) {
    std::string choices;
    for (const std::string& choice : option.choices) choices += (choices.empty() ? "" : "|") + choice;
    return text + " " + choices;
  }
  return option.type == ValueType::none ? text : text + " " + option.value_name;
}

std::string right_side(const OptionSpec& option) {
  std::string text = option.help;
  if (option.is_required) text += " (required)";
  if (!option.default_text.empty()) text += " [default: " + option.default_text + "]";
  return text;
}

struct Row {
  std::string left, right;
};

// Two columns; the right one is wrapped, and starts on its own line where the left one is too wide.
std::string section(const std::string& title, const std::vector<Row>& rows, size_t columns) {
  constexpr size_t kMaxLeft = 28;
  if (rows.empty()) return "";
  size_t left_width = 0;
  for (const Row& row : rows)
    if (width_of(row.left) <= kMaxLeft) left_width = std::max(left_width, width_of(row.left));
  const size_t indent = left_width + 4;
  std::string text = "\n" + title + ":\n";
  for (const Row& row : rows) {
    text += "  " + row.left;
    if (width_of(row.left) > left_width) {
      text += "\n" + std::string(indent, ' ');
    } else {
      text += std::string(indent - 2 - width_of(row.left), ' ');
    }
    text += wrapped(row.right, columns, indent) + "\n";
  }
  return text;
}

std::vector<Row> option_rows(const std::vector<OptionSpec>& options) {
  std::vector<Row> rows;
  for (const OptionSpec& option : options) rows.push_back({left_side(option), right_side(option)});
  return rows;
}

// A section for each group, in the order in which the groups first appear.
std::string command_sections(const CommandSpec& command, size_t columns) {
  std::vector<std::string> groups;
  size_t name_width = 0;  // The same in all sections, so that they read as one table.
  for (const CommandSpec& subcommand : command.subcommands) {
    name_width = std::max(name_width, width_of(subcommand.name));
    if (std::find(groups.begin(), groups.end(), subcommand.group) == groups.end())
      groups.push_back(subcommand.group);
  }
  std::string text;
  for (const std::string& group : groups) {
    std::vector<Row> rows;
    for (const CommandSpec& subcommand : command.subcommands) {
      if (subcommand.group != group) continue;
      const bool is_default = subcommand.name == command.default_subcommand;
      rows.push_back({subcommand.name + std::string(name_width - width_of(subcommand.name), ' '),
                      subcommand.summary + (is_default ? " (the default)" : "")});
    }
    text += section(group.empty() ? (groups.size() == 1 ? "Commands" : "Others") : group, rows, columns);
  }
  return text;
}

std::string exit_codes(const CommandSpec& command, size_t columns) {
  std::vector<ExitMeaning> meanings = {{0, "fine"}, {1, "failed"}, {2, "misuse"}, {130, "interrupted"}};
  meanings.insert(meanings.end(), command.exit_meanings.begin(), command.exit_meanings.end());
  std::sort(meanings.begin(), meanings.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
  std::string text;
  for (const ExitMeaning& meaning : meanings)
    text += (text.empty() ? "" : ", ") + std::to_string(meaning.code) + " " + meaning.meaning;
  return "\nExit codes: " + wrapped(text, columns - 12, 2) + "\n";
}

}  // namespace

std::string usage_line(const CommandSpec& command, const std::string& path) {
  std::string text = path;
  if (!command.subcommands.empty())
    return text + (command.default_subcommand.empty() ? " COMMAND" : " [COMMAND]") + " [OPTIONS]";
  for (const OptionSpec& option : command.options)
    if (option.is_required) text += " --" + option.name + " " + option.value_name;
  for (const PositionalSpec& positional : command.positionals) {
    const std::string name = positional.name + (positional.is_repeated ? "..." : "");
    text += positional.is_required ? " " + name : " [" + name + "]";
  }
  return text + (command.takes_raw_arguments ? " [ARGUMENTS]" : " [OPTIONS]");
}

std::string help_text(const CommandSpec& root, const CommandSpec& command, const std::string& path,
                      size_t columns) {
  columns = std::clamp<size_t>(columns, 40, kMaxColumns);
  std::string text =
      wrapped(path + ": " + command.summary, columns, 0) + "\n\nUsage: " + usage_line(command, path) + "\n";
  size_t begin = 0;
  while (begin < command.details.size()) {
    const size_t end = std::min(command.details.find('\n', begin), command.details.size());
    text += "\n" + wrapped(std::string_view(command.details).substr(begin, end - begin), columns, 0) + "\n";
    begin = end + 1;
  }

  text += command_sections(command, columns);
  std::vector<Row> rows;
  for (const PositionalSpec& positional : command.positionals) {
    std::string choices;
    for (const std::string& choice : positional.choices) choices += (choices.empty() ? ": " : ", ") + choice;
    rows.push_back({positional.name, positional.help + choices});
  }
  text += section("Arguments", rows, columns);
  if (&command != &root) text += section("Options", option_rows(command.options), columns);
  text += section("Global options", option_rows(root.options), columns);

  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples)
    text += "  " + example.line + "\n      " + wrapped(example.meaning, columns, 6) + "\n";
  text += exit_codes(command, columns);
  if (&command == &root) text += "\nHelp on a command: " + path + " COMMAND --help\n";
  return text;
}

}  // namespace lmemo::cli
