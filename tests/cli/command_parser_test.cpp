#include "cli/command_parser.h"

#include <doctest/doctest.h>

namespace lmemo::cli {
namespace {

CommandSpec small_table() {
  CommandSpec root;
  root.name = "tool";
  root.options = {{.name = "store", .type = ValueType::directory, .value_name = "DIR"},
                  {.name = "quiet", .short_name = 'q'},
                  {.name = "json"},
                  {.name = "help", .short_name = 'h'},
                  {.name = "version", .short_name = 'V'}};
  CommandSpec take;
  take.name = "take";
  take.options = {{.name = "to",
                   .type = ValueType::byte_count,
                   .value_name = "SIZE",
                   .help = "how much",
                   .is_required = true},
                  {.name = "older-than", .type = ValueType::duration, .value_name = "AGE"},
                  {.name = "count", .short_name = 'n', .type = ValueType::count, .value_name = "N"},
                  {.name = "shell", .type = ValueType::choice, .choices = {"bash", "fish"}},
                  {.name = "yes", .short_name = 'y'}};
  take.positionals = {{.name = "FILE", .help = "a file"},
                      {.name = "REST", .is_required = false, .is_repeated = true}};
  CommandSpec plain;
  plain.name = "plain";
  CommandSpec get = plain;
  get.name = "get";
  CommandSpec list = plain;
  list.name = "list";
  CommandSpec group;
  group.name = "group";
  group.subcommands = {list, get};
  group.default_subcommand = "list";
  CommandSpec strict = group;
  strict.name = "strict";
  strict.default_subcommand = "";
  CommandSpec raw;
  raw.name = "raw";
  raw.takes_raw_arguments = true;
  root.subcommands = {take, plain, group, strict, raw};
  return root;
}

struct Parsing {
  CommandSpec root = small_table();
  ParsedCommand parsed;
  std::optional<Misuse> misuse;

  explicit Parsing(const std::vector<std::string>& words) {
    misuse = parse_command_line(root, words, parsed);
  }
  std::string message() const { return misuse ? misuse->message : ""; }
};

TEST_CASE("options take values after a space, after an equals sign, or glued to a letter") {
  for (const auto& words : std::vector<std::vector<std::string>>{{"take", "f", "--to", "2GiB", "-n", "3"},
                                                                 {"take", "--to=2GiB", "f", "-n3"},
                                                                 {"take", "--to=2GiB", "-yn3", "f"}}) {
    const Parsing parsing(words);
    CHECK(parsing.message() == "");
    CHECK(parsing.parsed.path == "tool take");
    CHECK(parsing.parsed.arguments.byte_count("to") == uint64_t{2} << 30);
    CHECK(parsing.parsed.arguments.count("count") == 3);
    CHECK(parsing.parsed.arguments.positionals() == std::vector<std::string>{"f"});
  }
}

TEST_CASE("global options are valid before and after the command") {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--store", "d", "-q", "plain"}, {"plain", "-q", "--store=d"}}) {
    const Parsing parsing(words);
    CHECK(parsing.message() == "");
    CHECK(parsing.parsed.arguments.text("store") == "d");
    CHECK(parsing.parsed.arguments.has("quiet"));
  }
}

TEST_CASE("the last of two equal options wins") {
  CHECK(Parsing({"plain", "--store", "a", "--store", "b"}).parsed.arguments.text("store") == "b");
}

TEST_CASE("a group without a verb does its default") {
  CHECK(Parsing({"group"}).parsed.path == "tool group list");
  CHECK(Parsing({"group", "get"}).parsed.path == "tool group get");
  CHECK(Parsing({"strict"}).message() == "no command given; expected one of list, get");
}

TEST_CASE("after -- nothing is an option") {
  const Parsing parsing({"take", "--to", "1", "--", "-q", "--x"});
  CHECK(parsing.message() == "");
  CHECK(parsing.parsed.arguments.positionals() == std::vector<std::string>{"-q", "--x"});
  CHECK(!parsing.parsed.arguments.has("quiet"));
}

TEST_CASE("a raw command gets every word as it is") {
  const Parsing parsing({"raw", "--json", "--", "-x"});
  CHECK(parsing.message() == "");
  CHECK(parsing.parsed.arguments.positionals() == std::vector<std::string>{"--json", "--", "-x"});
}

TEST_CASE("mistakes are named, with the way out") {
  const auto message = [](const std::vector<std::string>& words) { return Parsing(words).message(); };
  CHECK(message({"plian"}) == "unknown command \"plian\". Did you mean \"plain\"?");
  CHECK(message({"group", "gt"}) == "unknown command \"gt\". Did you mean \"get\"?");
  CHECK(message({"zzzzzz"}) == "unknown command \"zzzzzz\".");
  CHECK(message({"plain", "--stor", "x"}) == "unknown option \"--stor\". Did you mean \"--store\"?");
  CHECK(message({"plain", "-z"}) == "unknown option \"-z\" in \"-z\"");
  CHECK(message({"plain", "x"}) == "unexpected argument \"x\"; \"tool plain\" takes none");
  CHECK(message({"plain", "--store"}) == "--store needs a value: --store DIR");
  CHECK(message({"plain", "--quiet=1"}) == "--quiet takes no value, found \"1\"");
  CHECK(message({"plain", "--store="}) == "--store: found an empty path; expected a path");
  CHECK(message({"take", "f"}) == "missing --to SIZE: how much");
  CHECK(message({"take", "--to", "1"}) == "missing FILE: a file");
  CHECK(message({"take", "f", "--to", "2G"}).find("--to: not a size: \"2G\"") == 0);
  CHECK(message({"take", "f", "--to", "1", "--older-than", "5"}).find("--older-than: not a time span") == 0);
  CHECK(message({"take", "f", "--to", "1", "--shell", "bsh"}) ==
        "--shell: \"bsh\" is not one of bash, fish. Did you mean \"bash\"?");
  CHECK(message({}) == "no command given; expected one of take, plain, group, strict, raw");
}

TEST_CASE("options after a mistake still count, so that --json is honoured") {
  const Parsing parsing({"plian", "--whatever", "--json"});
  CHECK(parsing.misuse);
  CHECK(parsing.parsed.arguments.has("json"));
}

TEST_CASE("help needs no complete command, but a known one") {
  CHECK(Parsing({"take", "--help"}).message() == "");
  CHECK(Parsing({"--help", "take"}).parsed.command->name == "take");
  CHECK(Parsing({"group", "-h"}).parsed.path == "tool group");
  CHECK(Parsing({"plian", "--help"}).misuse);
}

}  // namespace
}  // namespace lmemo::cli
