#include "cli/cli.h"

#include <exception>
#include <string>

#include "base/cpu.h"
#include "cli/command_context.h"
#include "cli/command_parser.h"
#include "cli/commands/all_commands.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/settings.h"
#include "lmemo/formats.h"

namespace lmemo {
namespace {

using namespace cli;

// "lmemo help config get" means "lmemo config get --help".
std::vector<std::string> without_help_word(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return words;
  std::vector<std::string> rest(words.begin() + 1, words.end());
  rest.push_back("--help");
  return rest;
}

std::string name_without_root(const std::string& path) {
  const size_t space = path.find(' ');
  return space == std::string::npos ? "" : path.substr(space + 1);
}

int report_misuse(Console& console, const Misuse& misuse, const std::string& command_name) {
  if (console.is_json) {
    JsonWriter json;
    json.begin_object();
    json.member("lmemo", kJsonVersion);
    json.member("command", command_name);
    json.begin_object("error");
    json.member("code", "invalid_argument");
    json.member("message", misuse.message);
    json.end_object();
    json.end_object();
    console.out(json);
  }
  console.error(misuse.message);
  console.hint("Try `" + misuse.command_path + " --help`.");
  return kExitMisuse;
}

void show_help(Console& console, const std::string& command_name, const std::string& text) {
  if (!console.is_json) return console.out(text);
  JsonWriter json;
  json.begin_object();
  json.member("lmemo", kJsonVersion);
  json.member("command", command_name);
  json.member("help", text);
  json.end_object();
  console.out(json);
}

void show_version(Console& console, const CliEnvironment& environment) {
  if (console.is_json) {
    JsonWriter json;
    json.begin_object();
    json.member("lmemo", kJsonVersion);
    json.member("command", "version");
    json.member("version", environment.version);
    json.member("segment_format", uint64_t{kFormatVersion});
    json.member("key_format", uint64_t{kKeyFormatVersion});
    json.member("cpu_path", cpu_path_name());
    json.end_object();
    return console.out(json);
  }
  console.out("lmemo " + environment.version + "\n");
  if (console.is_quiet) return;
  console.out("segments version " + std::to_string(kFormatVersion) + ", keys version " +
              std::to_string(kKeyFormatVersion) + "; CPU path: " + std::string(cpu_path_name()) + "\n");
}

int run(const std::vector<std::string>& arguments, CliEnvironment& environment) {
  const CommandSpec root = root_command(environment);
  Console console(environment);
  ParsedCommand parsed;
  const std::optional<Misuse> wrong = parse_command_line(root, without_help_word(arguments), parsed);
  console.is_json = parsed.arguments.has("json");
  console.is_quiet = parsed.arguments.has("quiet");
  const std::string name = name_without_root(parsed.path);

  const CommandSpec* const group = find_subcommand(root, name.substr(0, name.find(' ')));
  Result<Settings> settings =
      load_settings(parsed.arguments, environment, group != nullptr ? group->store_variable : "");
  if (settings.ok()) {
    console.use_color(settings->color());
  } else if (const auto color = parsed.arguments.text("color")) {
    console.use_color(*color);
  }

  if (wrong) return report_misuse(console, *wrong, name);
  if (parsed.wants_help) {
    show_help(
        console, name,
        help_text(root, *parsed.command, parsed.path, static_cast<size_t>(environment.terminal_columns)));
    return kExitFine;
  }
  if (parsed.wants_version) {
    show_version(console, environment);
    return kExitFine;
  }

  const Settings none;
  CommandContext context{name,    parsed.arguments, settings.ok() ? *settings : none,
                         console, environment,      root};
  if (!settings.ok() && parsed.command->needs_settings) return fail(context, settings.error());
  const int exit_code = parsed.command->run(context);
  console.end_progress();
  return exit_code;
}

void report_surprise(CliEnvironment& environment, const std::string& what) {
  if (environment.write_error)
    environment.write_error("error: " + what + "; this is a bug in lmemo, please report it\n");
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, CliEnvironment& environment) {
  // Our own code does not throw, but memory can run out, and an external command can do anything.
  try {
    return run(arguments, environment);
  } catch (const std::bad_alloc&) {
    if (environment.write_error) environment.write_error("error: out of memory\n");
  } catch (const std::exception& surprise) {
    report_surprise(environment, surprise.what());
  } catch (...) {
    report_surprise(environment, "unknown exception");
  }
  return kExitFailed;
}

}  // namespace lmemo
