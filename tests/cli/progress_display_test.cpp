#include "cli/progress_display.h"

#include <doctest/doctest.h>

#include "cli/console.h"
#include "cli/fake_environment.h"

namespace lmemo::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("a log gets one plain line every few seconds") {
  std::string written;
  ProgressDisplay display(false, 80, [&](std::string_view text) { written += text; });
  for (int64_t tenth = 0; tenth <= 120; ++tenth)
    display.show({"verify", static_cast<uint64_t>(tenth) << 20, 200 << 20, "bytes"}, tenth * kSecond / 10);
  display.hide();
  CHECK(written == "verify: 25 %, 50 MiB of 200 MiB\nverify: 50 %, 100 MiB of 200 MiB\n");
}

TEST_CASE("short work shows nothing") {
  std::string written;
  ProgressDisplay display(true, 80, [&](std::string_view text) { written += text; });
  display.show({"verify", 1, 2, "entries"}, 7 * kSecond);
  display.show({"verify", 2, 2, "entries"}, 7 * kSecond + 1000);
  display.hide();
  CHECK(written == "");
}

TEST_CASE("a terminal gets a bar that fits and goes away") {
  std::string written;
  ProgressDisplay display(true, 50, [&](std::string_view text) { written += text; });
  display.show({"compact", 0, 100, "entries"}, 0);
  display.show({"compact", 50, 100, "entries"}, kSecond);
  CHECK(written == "\r\x1b[K███████░░░░░░░  compact: 50 %, 50 of 100 entries");
  display.hide();
  display.hide();
  CHECK(written.ends_with("entries\r\x1b[K"));
}

TEST_CASE("work of unknown length counts up") {
  std::string written;
  ProgressDisplay display(true, 80, [&](std::string_view text) { written += text; });
  display.show({"scan", 0, 0, "entries"}, 0);
  display.show({"scan", 1234, 0, "entries"}, kSecond);
  CHECK(written == "\r\x1b[Kscan: 1,234 entries");
}

TEST_CASE("text from a file cannot steer the terminal") {
  CHECK(printable("tokens \xC3\xA4") == "tokens \xC3\xA4");
  CHECK(printable("\x1b[2Ja\rb\n\x7f\xC2\x9B") == "\\x1b[2Ja\\x0db\\x0a\\x7f\\xc2\x9B");
}

TEST_CASE("colour only on a terminal that can show it, or when asked for") {
  test::FakeEnvironment fake;
  fake.environment.output_is_terminal = true;
  Console console(fake.environment);
  CHECK(console.styled(Style::bold, "x") == "\x1b[1mx\x1b[0m");
  console.use_color("never");
  CHECK(console.styled(Style::bold, "x") == "x");
  console.use_color("always");
  CHECK(console.styled(Style::bold, "x") == "\x1b[1mx\x1b[0m");
  fake.variables["TERM"] = "dumb";
  console.use_color("auto");
  CHECK(console.styled(Style::bold, "x") == "x");
}

}  // namespace
}  // namespace lmemo::cli
