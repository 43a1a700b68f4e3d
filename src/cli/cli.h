// The whole command line as one function: the stand-alone program and the console script of the Python package
// both call it, so they cannot differ.
//
//   CliEnvironment environment = process_environment();   // cli/process_environment.h
//   environment.version = "0.1.0";
//   return run_cli({"show", "--json"}, environment);
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/dataset.h"
#include "lmemo/result.h"

namespace lmemo {

struct CliEnvironment;

// A command that lives outside this library, for example in Python. It appears in the help and in the completions,
// and gets every word that follows its name.
struct ExternalCommand {
  std::string name;
  std::string summary;
  std::function<int(const std::vector<std::string>& arguments, CliEnvironment& environment)> run;
};

// HuggingFace's tokenizer for a file, to compare with: only Python has it.
struct TokenOracle {
  std::string name;                // "tokenizers 0.23.3"
  std::vector<std::string> traps;  // Texts that tokenizers get wrong.
  // One row of ids for each text, special tokens added.
  std::function<Result<std::vector<std::vector<uint32_t>>>(std::span<const std::string> texts)> encode;
};

// All that a command sees of the world outside. An empty function counts as "there is none".
struct CliEnvironment {
  std::function<void(std::string_view)> write_output;  // Data.
  std::function<void(std::string_view)>
      write_error;  // Notes, progress, errors. Called from any thread, one at a time.
  bool input_is_terminal = false;
  bool output_is_terminal = false;
  bool error_is_terminal = false;
  int terminal_columns = 80;

  // The value of an environment variable.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Puts a question to the person at the terminal, and looks at `stop` while it waits. nullopt: end of input, or
  // stopped.
  std::function<std::optional<std::string>(std::string_view question, const std::function<bool()>& stop)> ask;
  // All of standard input.
  std::function<Result<std::string>()> read_input;
  // True once the user pressed Ctrl-C. Called often, from the working thread.
  std::function<bool()> interrupted;

  std::filesystem::path working_directory;
  std::filesystem::path shipped_examples;  // corpus/ and tokenizer/ that come with lmemo; empty if not found.
  std::vector<std::string> program;        // What starts this program once more, as a process of its own.
  std::string python;  // The interpreter that has the package lmemo; empty if there is none.
  std::string version;
  std::vector<ExternalCommand> external_commands;
  std::function<Result<TokenOracle>(const std::filesystem::path& tokenizer)> token_oracle;
  // Loads a tokenizer.json that lmemo's engines refuse: only Python has HuggingFace's.
  LoadTokenizer load_refused_tokenizer;
  std::function<std::string()> foreign_engine;  // Which that is, with its version.
  FetchModel fetch_model;                       // From the hub.
  // Brings an input that needs Python (Parquet, Arrow, hf://, https://) into `folder` as JSON lines; the files' paths.
  std::function<Result<std::vector<std::string>>(const std::string& input, const std::string& folder,
                                                 const std::string& text_field)>
      import_documents;
  // Jinja templates of chats: only Python has transformers.
  MakeChatRenderer make_chat_renderer;
  // Becomes another program, with variables added to its environment. Returns only if that failed.
  std::function<Error(const std::vector<std::string>& words,
                      const std::vector<std::pair<std::string, std::string>>& variables)>
      execute;
};

// 3 and 4 are answers, not failures: the command ran to its end.
enum ExitCode : int {
  kExitFine = 0,
  kExitFailed = 1,
  kExitMisuse = 2,
  kExitGaps = 3,
  kExitDamage = 4,
  kExitInterrupted = 130,
};

// Runs one command. Never exits, never throws. The name of the program is not among the arguments.
int run_cli(const std::vector<std::string>& arguments, CliEnvironment& environment);

}  // namespace lmemo
