// A world for run_cli() that a test makes up: what is written is kept, variables are a map.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace lmemo::test {

struct FakeEnvironment {
  std::map<std::string, std::string> variables;
  std::string output;
  std::string errors;
  std::vector<std::string> questions;
  std::optional<std::string> answer;
  bool is_interrupted = false;
  CliEnvironment environment;

  explicit FakeEnvironment(const std::filesystem::path& directory = "/nowhere") {
    environment.working_directory = directory;
    environment.version = "1.2.3";
    environment.write_output = [this](std::string_view text) { output += text; };
    environment.write_error = [this](std::string_view text) { errors += text; };
    environment.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    environment.ask = [this](std::string_view question, const std::function<bool()>&) {
      questions.emplace_back(question);
      return answer;
    };
    environment.interrupted = [this] { return is_interrupted; };
  }
  FakeEnvironment(const FakeEnvironment&) = delete;
  FakeEnvironment& operator=(const FakeEnvironment&) = delete;

  int run(const std::vector<std::string>& arguments) {
    output.clear();
    errors.clear();
    return run_cli(arguments, environment);
  }
};

}  // namespace lmemo::test
