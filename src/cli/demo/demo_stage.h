// Where the steps of `lmemo demo` play: a directory of its own, and commands of lmemo run in it for real.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_context.h"

namespace lmemo::cli {

class DemoStage {
 public:
  // `directory` exists; the store and everything else of the demo goes there.
  DemoStage(CommandContext& context, std::filesystem::path directory);
  ~DemoStage();
  DemoStage(const DemoStage&) = delete;
  DemoStage& operator=(const DemoStage&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path place(std::string_view name) const { return directory_ / name; }

  // Words for the reader; nothing when JSON or quiet was asked for.
  void say(const std::string& text);
  void heading(const std::string& title, const std::string& words);
  void command(const std::string& words);  // "$ lmemo …"
  // One measured line: "cold   56 sections tokenised   17.7 ms   remark"
  void line(const std::string& name, const std::string& what, double seconds, const std::string& remark);

  // Runs the command in this process and gives what it answers with --json. A failure carries its own words.
  Result<nlohmann::json> run(std::vector<std::string> words);
  // Runs the command as a process of its own, and ends it with kill -9 as soon as `is_time`. False: it was through before.
  Result<bool> run_and_kill(std::vector<std::string> words, const std::function<bool()>& is_time);
  // Runs another program to its end; what it wrote to standard output.
  Result<std::string> run_program(const std::vector<std::string>& words);

  Status check_interrupted() const;

 private:
  std::vector<std::string> complete(std::vector<std::string> words) const;
  // For what other processes say, and for their temporary files; nothing of it is left.
  std::filesystem::path scratch_directory() const { return directory_ / "scratch"; }

  CommandContext& context_;
  std::filesystem::path directory_;
};

}  // namespace lmemo::cli
