// Every word of the tables is in every script. That bash really completes with its script: cli_test.py.
#include "cli/completions.h"

#include <doctest/doctest.h>

#include "cli/commands/all_commands.h"

namespace lmemo::cli {
namespace {

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("each shell's script knows every command and every option") {
  const CommandSpec root = root_command({});
  const std::string bash = bash_completions(root), zsh = zsh_completions(root), fish = fish_completions(root);
  for_each_command(root, [&](const std::string& path, const CommandSpec& command) {
    CHECK_MESSAGE(says(bash, "'" + path + "'"), path);
    CHECK_MESSAGE(says(fish, "'" + path + "'"), path);
    std::string function = path.empty() ? "_lmemo() {" : "_lmemo_" + path + "() {";
    for (char& c : function)
      if (c == ' ' && &c != &function[function.size() - 2]) c = '_';
    CHECK_MESSAGE(says(zsh, function), function);
    for (const OptionSpec& option : command.options) {
      CHECK_MESSAGE(says(bash, "--" + option.name), option.name);
      CHECK_MESSAGE(says(zsh, "--" + option.name), option.name);
      CHECK_MESSAGE(says(fish, "-l " + option.name), option.name);
    }
  });
}

TEST_CASE("help texts are quoted for their shell") {
  CommandSpec root;
  root.name = "lmemo";
  root.options = {{.name = "odd", .help = "it's [odd]: a\\b"}};
  CHECK(says(zsh_completions(root), "'--odd[it'\\''s \\[odd\\]\\: a\\\\b]'"));
  CHECK(says(fish_completions(root), "-d 'it\\'s [odd]: a\\\\b'"));
}

}  // namespace
}  // namespace lmemo::cli
