// What a running command has at hand, and the few things that every command does the same way.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/command_parser.h"
#include "cli/command_table.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "lmemo/result.h"
#include "lmemo/store.h"

namespace lmemo::cli {

inline constexpr int kJsonVersion = 1;

struct CommandContext {
  const std::string name;  // "config get"
  const Arguments& arguments;
  const Settings& settings;  // Empty for commands that need none.
  Console& console;
  CliEnvironment& environment;
  const CommandSpec& root;

  bool was_interrupted() const { return environment.interrupted && environment.interrupted(); }
};

// {"lmemo": 1, "command": "show", … and open: the caller goes on and ends the object.
JsonWriter begin_json(const CommandContext& context);

// Says what went wrong, in words and, if asked for, in JSON. Returns the exit code.
int fail(CommandContext& context, const Error& error);
// The same for a request that makes no sense.
int misuse(CommandContext& context, const std::string& message);

enum class Access { look, change };
// The store of the settings. It must be there: a command that looks must not leave an empty store behind.
// Its notices are shown as warnings, and handed on to `and_then`.
Result<std::unique_ptr<Store>> open_existing_store(CommandContext& context, Access access,
                                                   std::function<void(const Notice&)> and_then = {});

}  // namespace lmemo::cli
