#include "cli/command_parser.h"

#include <algorithm>

#include "base/near_name.h"
#include "base/units.h"

namespace lmemo::cli {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

// What is wrong with a value, or nothing.
std::optional<std::string> complaint_about(ValueType type, const std::vector<std::string>& choices,
                                           const std::string& value) {
  const auto message_of = [](const auto& result) -> std::optional<std::string> {
    return result.ok() ? std::nullopt : std::optional(result.error().message);
  };
  switch (type) {
    case ValueType::byte_count: return message_of(parse_byte_count(value));
    case ValueType::duration: return message_of(parse_duration_seconds(value));
    case ValueType::count: return message_of(parse_count(value));
    case ValueType::choice:
      if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::nullopt;
      return quoted(value) + " is not one of " + joined(choices, ", ") + "." + did_you_mean(value, choices);
    case ValueType::file:
    case ValueType::directory:
      return value.empty() ? std::optional<std::string>("found an empty path; expected a path")
                           : std::nullopt;
    case ValueType::none:
    case ValueType::text: break;
  }
  return std::nullopt;
}

const OptionSpec* find_option(const std::vector<OptionSpec>& options, std::string_view name) {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const auto& known) { return known.name == name; });
  return found == options.end() ? nullptr : &*found;
}

const OptionSpec* find_option(const std::vector<OptionSpec>& options, char short_name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const auto& known) { return known.short_name == short_name; });
  return found == options.end() ? nullptr : &*found;
}

}  // namespace

class CommandParser {
 public:
  CommandParser(const CommandSpec& root, const std::vector<std::string>& words, ParsedCommand& parsed)
      : root_(root), words_(words), parsed_(parsed) {
    parsed_.command = &root;
    parsed_.path = root.name;
  }

  std::optional<Misuse> parse() {
    std::optional<Misuse> first_misuse;
    while (next_ < words_.size()) {
      std::optional<Misuse> misuse = take_word(words_[next_++]);
      // Later words are still read: a --json or --help among them counts.
      if (misuse && !first_misuse) first_misuse = std::move(misuse);
    }
    if (parsed_.wants_help || parsed_.wants_version) {
      // "lmemo shwo --help" is still a mistake; a missing argument is not one, if only help is wanted.
      return first_misuse;
    }
    if (first_misuse) return first_misuse;
    return check_complete();
  }

 private:
  std::optional<Misuse> misuse(std::string message) const { return Misuse{std::move(message), parsed_.path}; }

  std::optional<Misuse> take_word(const std::string& word) {
    if (parsed_.command->takes_raw_arguments) {
      parsed_.arguments.positionals_.push_back(word);
      return std::nullopt;
    }
    if (only_positionals_ || word.size() < 2 || word[0] != '-') return take_plain_word(word);
    if (word == "--") {
      only_positionals_ = true;
      return std::nullopt;
    }
    return word[1] == '-' ? take_long_option(word) : take_short_options(word);
  }

  std::optional<Misuse> take_plain_word(const std::string& word) {
    if (is_lost_) return std::nullopt;
    const CommandSpec& command = *parsed_.command;
    if (!command.subcommands.empty()) {
      if (const CommandSpec* subcommand = find_subcommand(command, word)) {
        parsed_.command = subcommand;
        parsed_.path += " " + subcommand->name;
        return std::nullopt;
      }
      is_lost_ = true;
      std::vector<std::string> names;
      for (const CommandSpec& known : command.subcommands) names.push_back(known.name);
      return misuse("unknown command " + quoted(word) + "." + did_you_mean(word, names));
    }
    std::vector<std::string>& taken = parsed_.arguments.positionals_;
    const std::vector<PositionalSpec>& wanted = command.positionals;
    if (wanted.empty() || (taken.size() >= wanted.size() && !wanted.back().is_repeated)) {
      is_lost_ = true;
      return misuse("unexpected argument " + quoted(word) + "; " + quoted(parsed_.path) +
                    (wanted.empty() ? " takes none" : " takes at most " + std::to_string(wanted.size())));
    }
    const PositionalSpec& spec = wanted[std::min(taken.size(), wanted.size() - 1)];
    taken.push_back(word);
    if (const auto complaint = complaint_about(spec.type, spec.choices, word))
      return misuse(spec.name + ": " + *complaint);
    return std::nullopt;
  }

  std::optional<Misuse> take_long_option(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    const OptionSpec* option = find_option(parsed_.command->options, name);
    if (!option) option = find_option(root_.options, name);
    if (!option) {
      std::vector<std::string> names;
      for (const auto* options : {&parsed_.command->options, &root_.options})
        for (const OptionSpec& known : *options) names.push_back("--" + known.name);
      return is_lost_
                 ? std::nullopt
                 : misuse("unknown option " + quoted("--" + name) + "." + did_you_mean("--" + name, names));
    }
    if (equals == std::string::npos) return take_option(*option, "--" + name, std::nullopt);
    return take_option(*option, "--" + name, word.substr(equals + 1));
  }

  // -q, -qn, -n20 and -n 20.
  std::optional<Misuse> take_short_options(const std::string& word) {
    for (size_t at = 1; at < word.size(); ++at) {
      const OptionSpec* option = find_option(parsed_.command->options, word[at]);
      if (!option) option = find_option(root_.options, word[at]);
      const std::string shown = std::string("-") + word[at];
      if (!option)
        return is_lost_ ? std::nullopt : misuse("unknown option " + quoted(shown) + " in " + quoted(word));
      if (option->type == ValueType::none) {
        if (auto problem = take_option(*option, shown, std::nullopt)) return problem;
        continue;
      }
      const std::string rest = word.substr(at + 1);
      return take_option(*option, shown, rest.empty() ? std::nullopt : std::optional(rest));
    }
    return std::nullopt;
  }

  std::optional<Misuse> take_option(const OptionSpec& option, const std::string& shown,
                                    std::optional<std::string> value) {
    if (option.type == ValueType::none) {
      if (value) return misuse(shown + " takes no value, found " + quoted(*value));
      parsed_.wants_help = parsed_.wants_help || option.name == "help";
      parsed_.wants_version = parsed_.wants_version || option.name == "version";
      parsed_.arguments.options_[option.name] = "";
      return std::nullopt;
    }
    if (!value) {
      if (next_ >= words_.size()) return misuse(shown + " needs a value: " + shown + " " + option.value_name);
      value = words_[next_++];
    }
    if (const auto complaint = complaint_about(option.type, option.choices, *value))
      return misuse(shown + ": " + *complaint);
    parsed_.arguments.options_[option.name] = *value;
    std::vector<std::string>& all = parsed_.arguments.repeated_[option.name];
    all.push_back(*value);
    if (!option.is_list) return std::nullopt;
    while (next_ < words_.size() && !words_[next_].empty() && words_[next_][0] != '-') {
      if (const auto complaint = complaint_about(option.type, option.choices, words_[next_]))
        return misuse(shown + ": " + *complaint);
      all.push_back(words_[next_++]);
    }
    return std::nullopt;
  }

  std::optional<Misuse> check_complete() {
    while (!parsed_.command->subcommands.empty()) {
      const CommandSpec* chosen = find_subcommand(*parsed_.command, parsed_.command->default_subcommand);
      if (!chosen) {
        std::vector<std::string> names;
        for (const CommandSpec& known : parsed_.command->subcommands) names.push_back(known.name);
        return misuse("no command given; expected one of " + joined(names, ", "));
      }
      parsed_.command = chosen;
      parsed_.path += " " + chosen->name;
    }
    for (const OptionSpec& option : parsed_.command->options)
      if (option.is_required && !parsed_.arguments.has(option.name))
        return misuse("missing --" + option.name + " " + option.value_name + ": " + option.help);
    const size_t given = parsed_.arguments.positionals_.size();
    const std::vector<PositionalSpec>& wanted = parsed_.command->positionals;
    if (given < wanted.size() && wanted[given].is_required)
      return misuse("missing " + wanted[given].name + ": " + wanted[given].help);
    return std::nullopt;
  }

  const CommandSpec& root_;
  const std::vector<std::string>& words_;
  ParsedCommand& parsed_;
  size_t next_ = 0;
  bool only_positionals_ = false;
  bool is_lost_ = false;  // After an unknown command nothing but the global options can be made sense of.
};

std::optional<Misuse> parse_command_line(const CommandSpec& root, const std::vector<std::string>& words,
                                         ParsedCommand& parsed) {
  return CommandParser(root, words, parsed).parse();
}

std::vector<std::string> Arguments::texts(std::string_view option) const {
  const auto found = repeated_.find(std::string(option));
  return found == repeated_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> Arguments::text(std::string_view option) const {
  const auto found = options_.find(std::string(option));
  return found == options_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint64_t> Arguments::byte_count(std::string_view option) const {
  const auto given = text(option);
  return given ? std::optional(parse_byte_count(*given).value()) : std::nullopt;
}

std::optional<double> Arguments::seconds(std::string_view option) const {
  const auto given = text(option);
  return given ? std::optional(parse_duration_seconds(*given).value()) : std::nullopt;
}

std::optional<uint64_t> Arguments::count(std::string_view option) const {
  const auto given = text(option);
  return given ? std::optional(parse_count(*given).value()) : std::nullopt;
}

std::optional<std::string> Arguments::positional(size_t index) const {
  return index < positionals_.size() ? std::optional(positionals_[index]) : std::nullopt;
}

}  // namespace lmemo::cli
