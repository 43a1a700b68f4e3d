// run_cli() in a made-up world. What needs a real process, terminal or shell is in cli_test.py.
#include "cli/cli.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "cli/commands/all_commands.h"
#include "cli/completions.h"
#include "cli/fake_environment.h"
#include "lmemo/store.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

using test::FakeEnvironment;
using test::TempDirectory;

// A store with three entries of two kinds.
void fill_store(const std::filesystem::path& directory) {
  auto store = open_store(directory);
  REQUIRE(store.ok());
  for (int number = 0; number < 3; ++number) {
    const auto key = Key::of(number < 2 ? "tokens" : "forward", {{"number", number}});
    REQUIRE(key.ok());
    REQUIRE((*store)->put(*key, bytes_of("value")).ok());
  }
  REQUIRE((*store)->flush().ok());
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("every command has help with a usage line, at least one example and its exit codes") {
  FakeEnvironment fake;
  cli::for_each_command(cli::root_command(fake.environment),
                        [&](const std::string& path, const cli::CommandSpec& command) {
                          std::vector<std::string> words;
                          for (size_t begin = 0; begin < path.size();) {
                            const size_t end = std::min(path.find(' ', begin), path.size());
                            words.push_back(path.substr(begin, end - begin));
                            begin = end + 1;
                          }
                          words.push_back("--help");
                          CHECK(fake.run(words) == kExitFine);
                          CHECK(fake.errors == "");
                          CHECK_MESSAGE(says(fake.output, "Usage: lmemo"), path);
                          // The list of all commands fits a screen instead.
                          if (words.size() == 1)
                            CHECK(std::count(fake.output.begin(), fake.output.end(), '\n') <= 50);
                          else
                            CHECK_MESSAGE(says(fake.output, "Examples:\n"), path);
                          CHECK_MESSAGE(says(fake.output, "130 interrupted"), path);
                          CHECK_MESSAGE(!command.summary.empty(), path);
                          CHECK_MESSAGE((command.run || !command.subcommands.empty()), path);
                        });
  CHECK(fake.run({"help", "config", "get"}) == kExitFine);
  CHECK(says(fake.output, "lmemo config get: print the value"));
}

TEST_CASE("options of a command hide no global option and repeat no letter") {
  FakeEnvironment fake;
  const cli::CommandSpec root = cli::root_command(fake.environment);
  cli::for_each_command(root, [&](const std::string& path, const cli::CommandSpec& command) {
    if (path.empty()) return;
    for (const cli::OptionSpec& option : command.options)
      for (const cli::OptionSpec& global : root.options) {
        CHECK_MESSAGE(option.name != global.name, path);
        CHECK_MESSAGE((option.short_name == 0 || option.short_name != global.short_name), path);
      }
  });
}

// Permissions do not bind root: where tests run as root, the command is run by a child that is nobody.
void expect_as_nobody(FakeEnvironment& fake, const std::vector<std::string>& words, int exit_code,
                      const std::vector<std::string>& parts) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    bool is_good = fake.run(words) == exit_code;
    for (const std::string& part : parts) is_good = is_good && says(fake.output + fake.errors, part);
    if (!is_good)
      std::fprintf(stderr, "%s: %s%s\n", words[0].c_str(), fake.output.c_str(), fake.errors.c_str());
    ::_exit(is_good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_MESSAGE((WIFEXITED(status) && WEXITSTATUS(status) == 0), words[0]);
}

TEST_CASE("what may not be read is neither damage nor fine, and repair says that it left it") {
  const TempDirectory directory;
  const std::filesystem::path store = directory / "store";
  fill_store(store);
  ::chmod(directory.path().c_str(), 0777);
  ::chmod(store.c_str(), 0777);
  std::string segment;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
    ::chmod(entry.path().c_str(), entry.is_directory() ? 0777 : 0666);
    if (entry.path().extension() == ".seg") segment = entry.path();
  }
  REQUIRE(::chmod(segment.c_str(), 0) == 0);
  FakeEnvironment fake(directory.path());
  fake.variables["LMEMO_STORE"] = store;
  expect_as_nobody(fake, {"verify"}, kExitFailed,
                   {"unreadable segments/", "Permission denied", "not all could be read"});
  expect_as_nobody(fake, {"verify", "-q"}, kExitFailed, {segment + "\n"});
  expect_as_nobody(fake, {"repair"}, kExitFailed, {"unreadable segments/", "as its owner"});
  expect_as_nobody(fake, {"report"}, kExitFine, {"Files of the store cannot be read", "lmemo verify"});
  REQUIRE(::chmod(segment.c_str(), 0666) == 0);
  expect_as_nobody(fake, {"verify"}, kExitFine, {"sound: 1 segment, 3 records"});
}

TEST_CASE("the version is the one of the program around it") {
  FakeEnvironment fake;
  CHECK(fake.run({"--version"}) == kExitFine);
  CHECK(fake.output.starts_with("lmemo 1.2.3\nsegments version 1, keys version 1; CPU path: "));
  CHECK(fake.run({"--version", "-q"}) == kExitFine);
  CHECK(fake.output == "lmemo 1.2.3\n");
  CHECK(fake.run({"--version", "--json"}) == kExitFine);
  CHECK(says(fake.output, "\"cpu_path\": \""));
}

TEST_CASE("misuse goes to standard error, and to JSON if that was asked for") {
  FakeEnvironment fake;
  CHECK(fake.run({"shwo"}) == kExitMisuse);
  CHECK(fake.output == "");
  CHECK(says(fake.errors, "Did you mean \"show\"?"));
  CHECK(fake.run({"shwo", "--json"}) == kExitMisuse);
  CHECK(says(fake.output, "\"code\": \"invalid_argument\""));
}

TEST_CASE("looking for a store that is not there makes none") {
  const TempDirectory directory;
  FakeEnvironment fake(directory.path());
  for (const char* command : {"show", "verify", "repair", "compact"}) {
    CHECK(fake.run({command, "--store", "none"}) == kExitFailed);
    CHECK(says(fake.errors, "no store at " + (directory / "none").string()));
    CHECK(!std::filesystem::exists(directory / "none"));
  }
}

TEST_CASE("a destructive command asks, and takes only yes for yes") {
  const TempDirectory directory;
  FakeEnvironment fake(directory.path());
  fill_store(directory / "s");
  fake.environment.input_is_terminal = true;
  for (const auto& answer :
       {std::optional<std::string>("n"), std::optional<std::string>(""), std::optional<std::string>()}) {
    fake.answer = answer;
    CHECK(fake.run({"clear", "--store", "s"}) == kExitFailed);
    CHECK(says(fake.errors, "nothing was removed"));
  }
  CHECK(fake.questions.size() == 3);
  CHECK(says(fake.questions.front(), "Remove 3 entries, "));
  CHECK(fake.run({"show", "--store", "s", "-q"}) == kExitFine);
  CHECK(fake.output.size() == 3 * 65);

  fake.answer = "y";
  CHECK(fake.run({"clear", "--store", "s", "--kind", "tokens"}) == kExitFine);
  CHECK(says(fake.output, "removed 2 entries"));
  CHECK(fake.run({"clear", "--store", "s"}) == kExitFine);
  CHECK(says(fake.output, "removed 1 entry"));
  fake.questions.clear();
  CHECK(fake.run({"clear", "--store", "s"}) == kExitFine);
  CHECK(fake.questions.empty());
}

TEST_CASE("without a terminal a destructive command refuses, unless told yes") {
  const TempDirectory directory;
  FakeEnvironment fake(directory.path());
  fill_store(directory / "s");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"clear"}, {"evict", "--to", "1"}, {"prune", "--older-than", "0s"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--store", "s"});
    CHECK(fake.run(all) == kExitMisuse);
    CHECK(says(fake.errors, "add --yes"));
    all.push_back("--dry-run");
    CHECK(fake.run(all) == kExitFine);
    CHECK(says(fake.output, "would remove 3 entries"));
  }
  CHECK(fake.questions.empty());
  CHECK(fake.run({"clear", "--store", "s", "--yes", "--json"}) == kExitFine);
  CHECK(says(fake.output, "\"entries\": 3"));
}

TEST_CASE("Ctrl-C gives 130 and keeps everything") {
  const TempDirectory directory;
  FakeEnvironment fake(directory.path());
  fill_store(directory / "s");
  fake.is_interrupted = true;
  CHECK(fake.run({"verify", "--store", "s"}) == kExitInterrupted);
  CHECK(fake.run({"prune", "--older-than", "0s", "--yes", "--store", "s"}) == kExitInterrupted);
  fake.environment.input_is_terminal = true;
  CHECK(fake.run({"clear", "--store", "s"}) == kExitInterrupted);
  fake.is_interrupted = false;
  CHECK(fake.run({"show", "-q", "--store", "s"}) == kExitFine);
  CHECK(fake.output.size() == 3 * 65);
}

TEST_CASE("a broken settings file stops what needs settings, and only that") {
  FakeEnvironment fake;
  fake.variables = {{"LMEMO_CHECK", "sometimes"}};
  CHECK(fake.run({"show"}) == kExitMisuse);
  CHECK(says(fake.errors, "LMEMO_CHECK"));
  CHECK(fake.run({"completions", "bash"}) == kExitFine);
  CHECK(fake.run({"--help"}) == kExitFine);
}

TEST_CASE("a command from outside gets its words, is in the help, and may throw") {
  FakeEnvironment fake;
  std::vector<std::string> seen;
  fake.environment.external_commands = {
      {"hub", "fetch from the hub",
       [&](const std::vector<std::string>& words, CliEnvironment&) {
         seen = words;
         return 3;
       }},
      {"bad", "throws",
       [](const std::vector<std::string>&, CliEnvironment&) -> int { throw std::runtime_error("boom"); }}};
  CHECK(fake.run({"hub", "get", "--json", "x"}) == 3);
  CHECK(seen == std::vector<std::string>{"get", "--json", "x"});
  CHECK(fake.run({"--help"}) == kExitFine);
  CHECK(says(fake.output, "fetch from the hub"));
  CHECK(fake.run({"bad"}) == kExitFailed);
  CHECK(says(fake.errors, "boom"));
}

TEST_CASE("an environment with nothing in it is survived") {
  CliEnvironment empty;
  CHECK(run_cli({"--help"}, empty) == kExitFine);
  CHECK(run_cli({"show"}, empty) == kExitFailed);
  CHECK(run_cli({"clear", "--yes"}, empty) == kExitFailed);
  CHECK(run_cli({}, empty) == kExitMisuse);
}

}  // namespace
}  // namespace lmemo
