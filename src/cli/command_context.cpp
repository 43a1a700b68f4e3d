#include "cli/command_context.h"

#include <filesystem>

namespace lmemo::cli {
namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return kExitMisuse;
    case ErrorCode::corruption: return kExitDamage;
    case ErrorCode::interrupted: return kExitInterrupted;
    default: return kExitFailed;
  }
}

}  // namespace

JsonWriter begin_json(const CommandContext& context) {
  JsonWriter json;
  json.begin_object();
  json.member("lmemo", kJsonVersion);
  json.member("command", context.name);
  return json;
}

int fail(CommandContext& context, const Error& error) {
  context.console.end_progress();
  if (context.console.is_json) {
    JsonWriter json = begin_json(context);
    json.begin_object("error");
    json.member("code", name_of(error.code));
    json.member("message", error.message);
    json.end_object();
    json.end_object();
    context.console.out(json);
  }
  // Who pressed Ctrl-C knows what happened.
  if (error.code == ErrorCode::interrupted) {
    context.console.note("interrupted; what was finished is kept");
  } else {
    const bool is_misuse = error.code == ErrorCode::invalid_argument;
    context.console.error(is_misuse ? error.message : error.describe());
  }
  return exit_code_of(error.code);
}

int misuse(CommandContext& context, const std::string& message) {
  const int exit_code = fail(context, Error{ErrorCode::invalid_argument, message});
  context.console.hint("Try `lmemo " + context.name + " --help`.");
  return exit_code;
}

Result<std::unique_ptr<Store>> open_existing_store(CommandContext& context, Access access,
                                                   std::function<void(const Notice&)> and_then) {
  const std::filesystem::path directory = context.settings.store();
  std::error_code error;
  const bool is_there = std::filesystem::is_directory(directory, error);
  if (!is_there) {
    const std::string origin = context.settings.find("store")->origin;
    const std::string found = error ? error.message() : "not a directory";
    return Error{
        ErrorCode::io_error,
        "no store at " + directory.string() + " (from " + origin + "): " + found +
            "; nothing was stored there yet, or --store or LMEMO_STORE should name another directory"};
  }
  StoreOptions options = context.settings.store_options();
  options.create = false;
  options.read_only = access == Access::look;
  options.on_notice = [&console = context.console, and_then = std::move(and_then)](const Notice& notice) {
    console.warn(std::string(name_of(notice.code)) + ": " + notice.message);
    if (and_then) and_then(notice);
  };
  return open_store(directory, std::move(options));
}

}  // namespace lmemo::cli
