// lmemo config: which settings are in force, and where each one comes from.
#include <string>
#include <vector>

#include "base/near_name.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

int run_list(CommandContext& context) {
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.begin_array("settings");
    for (const Setting& setting : context.settings.all()) {
      json.begin_object();
      json.member("key", setting.key);
      json.member("value", setting.text);
      json.member("origin", setting.origin);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    console.out(json);
    return kExitFine;
  }
  if (console.is_quiet) {
    for (const Setting& setting : context.settings.all()) console.out(printable(setting.key) + "\n");
    return kExitFine;
  }
  TextTable table({Align::left, Align::left, Align::left});
  for (const Setting& setting : context.settings.all())
    table.add({setting.key, setting.text, "(" + setting.origin + ")"});
  console.out(table.text(0));
  return kExitFine;
}

int run_get(CommandContext& context) {
  const std::string key = context.arguments.positional(0).value();
  const Setting* setting = context.settings.find(key);
  if (!setting) {
    std::vector<std::string> keys;
    for (const Setting& known : context.settings.all()) keys.push_back(known.key);
    return misuse(context, "no setting \"" + key + "\" is in force." + did_you_mean(key, keys));
  }
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("key", setting->key);
    json.member("value", setting->text);
    json.member("origin", setting->origin);
    json.end_object();
    context.console.out(json);
  } else {
    context.console.out(setting->text + "\n");
  }
  return kExitFine;
}

int run_path(CommandContext& context) {
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.begin_array("files");
    for (const ConfigCandidate& file : context.settings.files()) {
      json.begin_object();
      json.member("path", file.path.string());
      json.member("role", file.role);
      json.member("was_read", file.was_read);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    console.out(json);
    return kExitFine;
  }
  TextTable table({Align::left, Align::left, Align::left});
  for (const ConfigCandidate& file : context.settings.files()) {
    if (console.is_quiet && file.was_read) console.out(file.path.string() + "\n");
    table.add({file.role, file.path.string(), file.was_read ? "(read)" : "(not there)"});
  }
  if (!console.is_quiet) console.out(table.text(0));
  return kExitFine;
}

CommandSpec verb(std::string name, std::string summary, int (*run)(CommandContext&)) {
  CommandSpec command;
  command.name = std::move(name);
  command.summary = std::move(summary);
  command.run = run;
  return command;
}

}  // namespace

std::vector<CommandSpec> config_commands() {
  CommandSpec list = verb("list", "show every setting in force with its origin", run_list);
  list.examples = {{"lmemo config list", "Which store, which limits, and who said so."}};
  CommandSpec get = verb("get", "print the value of one setting", run_get);
  get.positionals = {{.name = "KEY", .help = "such as store, max_bytes or limits.tokens"}};
  get.examples = {{"cd \"$(lmemo config get store)\"", "Go to the store."}};
  CommandSpec path = verb("path", "show which settings files are looked for, strongest first", run_path);
  path.examples = {{"lmemo config path --quiet", "Only the files that were read."}};

  CommandSpec config;
  config.name = "config";
  config.summary = "show the settings in force and where each one comes from";
  config.details =
      "Flags win over environment variables (LMEMO_STORE, LMEMO_MAX_BYTES, LMEMO_CHECK, LMEMO_COLOR, "
      "LMEMO_CONFIG), these "
      "over the lmemo.toml found upward from the working directory, that over "
      "$XDG_CONFIG_HOME/lmemo/config.toml.\n"
      "Keys of the files: store, max_bytes, check (first_find or every_find), color, and one limit per kind "
      "under [limits].";
  config.subcommands = {list, get, path};
  config.default_subcommand = "list";
  config.examples = {{"lmemo config", "The same as lmemo config list."}};
  return {config};
}

}  // namespace lmemo::cli
