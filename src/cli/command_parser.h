// Turns the words of a command line into a command and its checked arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_table.h"
#include "lmemo/result.h"

namespace lmemo::cli {

// What was given, already checked against the table: the accessors below cannot fail.
class Arguments {
 public:
  bool has(std::string_view option) const { return options_.contains(std::string(option)); }
  // The last one wins if an option was given twice.
  std::optional<std::string> text(std::string_view option) const;
  // All that were given, of an option that is_list or was repeated.
  std::vector<std::string> texts(std::string_view option) const;
  std::optional<uint64_t> byte_count(std::string_view option) const;
  std::optional<double> seconds(std::string_view option) const;
  std::optional<uint64_t> count(std::string_view option) const;

  const std::vector<std::string>& positionals() const { return positionals_; }
  std::optional<std::string> positional(size_t index) const;

 private:
  friend class CommandParser;
  std::map<std::string, std::string> options_;
  std::map<std::string, std::vector<std::string>> repeated_;
  std::vector<std::string> positionals_;
};

struct ParsedCommand {
  const CommandSpec* command = nullptr;  // As deep as the words led.
  std::string path;                      // "lmemo config get"
  Arguments arguments;
  bool wants_help = false;
  bool wants_version = false;
};

struct Misuse {
  std::string message;       // What is wrong, and what would be right.
  std::string command_path;  // Whose help to read.
};

// `root` holds the global options: they are valid before and after the name of the command. The words that were
// understood are filled into `parsed` even if the result is misuse, so that --json and --color are honoured then too.
std::optional<Misuse> parse_command_line(const CommandSpec& root, const std::vector<std::string>& words,
                                         ParsedCommand& parsed);

}  // namespace lmemo::cli
