#include "cli/settings.h"

#include <doctest/doctest.h>

#include <fstream>

#include "cli/commands/all_commands.h"
#include "cli/fake_environment.h"
#include "cli/settings_table.h"
#include "support/temp_directory.h"

namespace lmemo::cli {
namespace {

using test::FakeEnvironment;
using test::TempDirectory;

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

Result<Settings> settings_of(FakeEnvironment& fake, std::vector<std::string> words = {}) {
  const CommandSpec root = root_command(fake.environment);
  ParsedCommand parsed;
  words.push_back("show");
  const auto misuse = parse_command_line(root, words, parsed);
  REQUIRE(!misuse);
  return load_settings(parsed.arguments, fake.environment);
}

std::string origin(const Settings& settings, std::string_view key) {
  const Setting* setting = settings.find(key);
  REQUIRE(setting);
  return setting->origin;
}

std::string message_of(std::string_view config) {
  const auto values = read_config(config, "lmemo.toml");
  REQUIRE_MESSAGE(!values.ok(), std::string(config));
  CHECK(values.error().code == ErrorCode::invalid_argument);
  return values.error().message;
}

TEST_CASE("a command's own variable names its store before LMEMO_STORE, and behind --store") {
  FakeEnvironment fake;
  fake.variables = {{"HOME", "/home/ada"}, {"LMEMO_STORE", "/all"}};
  const CommandSpec root = root_command(fake.environment);
  const auto store_of = [&](const std::vector<std::string>& words) {
    ParsedCommand parsed;
    REQUIRE(!parse_command_line(root, words, parsed));
    const auto settings = load_settings(parsed.arguments, fake.environment, "LMEMO_ACTIVATIONS_STORE");
    REQUIRE(settings.ok());
    return settings->store().string() + " from " + origin(*settings, "store");
  };
  CHECK(store_of({"activations", "show"}) == "/all from LMEMO_STORE");
  fake.variables["LMEMO_ACTIVATIONS_STORE"] = "~/own";
  CHECK(store_of({"activations", "show"}) == "/home/ada/own from LMEMO_ACTIVATIONS_STORE");
  CHECK(store_of({"activations", "show", "--store", "/given"}) == "/given from --store");
  CHECK(settings_of(fake)->store() == "/all");
}

TEST_CASE("without anything set, the defaults hold and say so") {
  FakeEnvironment fake;
  fake.variables = {{"HOME", "/home/ada"}};
  const auto settings = settings_of(fake);
  REQUIRE(settings.ok());
  CHECK(settings->store() == "/home/ada/.cache/lmemo");
  CHECK(settings->color() == "auto");
  CHECK(origin(*settings, "store") == "default");
  const StoreOptions options = settings->store_options();
  CHECK(options.max_bytes == kDefaultMaxBytes);
  CHECK(options.check == CheckPolicy::first_find);
  CHECK(options.max_bytes_by_kind.empty());

  fake.variables["XDG_CACHE_HOME"] = "/cache";
  CHECK(settings_of(fake)->store() == "/cache/lmemo");
  fake.variables["XDG_CACHE_HOME"] = "relative";  // The XDG rules: ignore it.
  CHECK(settings_of(fake)->store() == "/home/ada/.cache/lmemo");
}

TEST_CASE("flags win over the environment, that over the project's file, that over the user's") {
  const TempDirectory directory;
  const auto project = directory / "project";
  write(project / "lmemo.toml",
        "# ours\nstore = \"cache\"\nmax_bytes = \"2GiB\"\n\n[limits]\ntokens = 4096\n");
  write(directory / "home/.config/lmemo/config.toml",
        "max_bytes = \"1GiB\"\ncheck = \"every_find\"\nlimits.forward = \"1MB\"\n");
  std::filesystem::create_directories(project / "deep/er");
  FakeEnvironment fake(project / "deep/er");
  fake.variables = {{"HOME", (directory / "home").string()}};

  auto settings = settings_of(fake);
  REQUIRE(settings.ok());
  CHECK(settings->store() == project / "cache");  // Relative to the file, not to the working directory.
  CHECK(origin(*settings, "store") == (project / "lmemo.toml").string() + ":2");
  CHECK(origin(*settings, "max_bytes") == (project / "lmemo.toml").string() + ":3");
  CHECK(origin(*settings, "check") == (directory / "home/.config/lmemo/config.toml").string() + ":2");
  CHECK(origin(*settings, "limits.tokens") == (project / "lmemo.toml").string() + ":6");
  const StoreOptions options = settings->store_options();
  CHECK(options.max_bytes == uint64_t{2} << 30);
  CHECK(options.check == CheckPolicy::every_find);
  CHECK(options.max_bytes_by_kind ==
        std::map<std::string, uint64_t>{{"tokens", 4096}, {"forward", 1'000'000}});

  fake.variables["LMEMO_STORE"] = "mine";
  fake.variables["LMEMO_MAX_BYTES"] = "none";
  settings = settings_of(fake);
  CHECK(settings->store() == project / "deep/er/mine");
  CHECK(origin(*settings, "store") == "LMEMO_STORE");
  CHECK(settings->store_options().max_bytes == 0);

  settings = settings_of(fake, {"--store", "~/theirs"});
  CHECK(settings->store() == directory / "home/theirs");
  CHECK(origin(*settings, "store") == "--store");
}

TEST_CASE("a named file stands in for the one found upward, and must be there") {
  const TempDirectory directory;
  write(directory / "lmemo.toml", "max_bytes = 1\n");
  write(directory / "other.toml", "max_bytes = 2\n");
  FakeEnvironment fake(directory.path());
  CHECK(settings_of(fake)->store_options().max_bytes == 1);
  CHECK(settings_of(fake, {"--config", "other.toml"})->store_options().max_bytes == 2);
  fake.variables["LMEMO_CONFIG"] = "other.toml";
  CHECK(settings_of(fake)->store_options().max_bytes == 2);
  const auto missing = settings_of(fake, {"--config", "missing.toml"});
  REQUIRE(!missing.ok());
  CHECK(missing.error().message.find("missing.toml") != std::string::npos);
}

TEST_CASE("NO_COLOR holds unless somebody asks for colour by name") {
  FakeEnvironment fake;
  fake.variables = {{"NO_COLOR", "1"}};
  CHECK(settings_of(fake)->color() == "never");
  CHECK(origin(*settings_of(fake), "color") == "NO_COLOR");
  CHECK(settings_of(fake, {"--color", "always"})->color() == "always");
  fake.variables["NO_COLOR"] = "";  // no-color.org: when not empty.
  CHECK(settings_of(fake)->color() == "auto");
}

TEST_CASE("a bad variable is named") {
  FakeEnvironment fake;
  fake.variables = {{"LMEMO_MAX_BYTES", "lots"}};
  const auto settings = settings_of(fake);
  REQUIRE(!settings.ok());
  CHECK(settings.error().message.find("LMEMO_MAX_BYTES: not a limit: \"lots\"") == 0);
}

TEST_CASE("mistakes in a file are named with file, line and way out") {
  CHECK(message_of("\nmax_byte = 1")
            .find("lmemo.toml:2: unknown setting \"max_byte\"; expected one of store,") == 0);
  CHECK(message_of("\nmax_byte = 1").find("Did you mean \"max_bytes\"?") != std::string::npos);
  CHECK(message_of("[limit]\ntokens = 1").find("lmemo.toml:2: unknown setting \"limit.tokens\"") == 0);
  CHECK(message_of("check = \"never\"") ==
        "lmemo.toml:1: check: found \"never\"; expected one of first_find, every_find.");
  CHECK(message_of("store = 3") == "lmemo.toml:1: store: found a whole number; expected a path in quotes");
  CHECK(message_of("store = \"\"") == "lmemo.toml:1: store: found an empty text; expected a path");
  CHECK(message_of("max_bytes = -1").find("lmemo.toml:1: max_bytes: not a limit: \"-1\"") == 0);
  CHECK(message_of("max_bytes = 1.5").find("max_bytes: found a fraction") != std::string::npos);
  CHECK(message_of("color = \"auto\"\nlimits = 3").find("lmemo.toml:2: unknown setting \"limits\"") == 0);
}

}  // namespace
}  // namespace lmemo::cli
