#include "faces/forward/trace_writer.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/tick_clock.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

std::string text_in(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::unique_ptr<TraceWriter> open_writer(const std::filesystem::path& path) {
  auto writer = TraceWriter::open(path);
  REQUIRE(writer.ok());
  return std::move(writer).value();
}

TraceEvent timed_event(std::string_view label, double time_seconds, double wall_ms) {
  return {.label = label, .flags = TraceEvent::has_time, .time_seconds = time_seconds, .wall_ms = wall_ms};
}

}  // namespace

TEST_CASE("a line has every member, in order") {
  const test::TempDirectory directory;
  auto writer = open_writer(directory.path() / "a" / "b" / "t");
  const std::string label = trace_label("\"base\"", "\"ab\"", "256", "\"op\"");
  TraceEvent event = timed_event(label, 1.5, 20);
  writer->write(event);
  event.probe = "\"p\"";
  event.error = "\"OSError\"";
  event.flags |= TraceEvent::hit | TraceEvent::waited;
  writer->write(event);
  writer->close();
  CHECK(text_in(directory.path() / "a" / "b" / "t") ==
        "{\"ts\": 1.5, \"probe\": null, \"view_id\": \"base\", \"prompt_hash\": \"ab\", \"top_k\": 256, "
        "\"op\": \"op\", \"wall_ms\": 20.0, "
        "\"hit\": false}\n"
        "{\"ts\": 1.5, \"probe\": \"p\", \"view_id\": \"base\", \"prompt_hash\": \"ab\", \"top_k\": 256, "
        "\"op\": \"op\", \"wall_ms\": 20.0, "
        "\"hit\": true, \"waited\": true, \"error\": \"OSError\"}\n");
  CHECK(writer->lines() == 2);
}

TEST_CASE("ticks become the time of day and milliseconds") {
  const test::TempDirectory directory;
  auto writer = open_writer(directory.path() / "t");
  const double before = static_cast<double>(system_clock().now_ns()) * 1e-9;
  const auto ticks = static_cast<uint64_t>(0.25 / seconds_per_tick());
  writer->write({.label = "\"x\": 1", .end_ticks = ticks_now(), .wall_ticks = ticks});
  writer->close();
  const std::string line = text_in(directory.path() / "t");
  CHECK(std::stod(line.substr(line.find(": ") + 2)) == doctest::Approx(before).epsilon(1e-9));
  CHECK(std::stod(line.substr(line.find("wall_ms") + 10)) == doctest::Approx(250).epsilon(1e-2));
}

TEST_CASE("a label longer than the buffer is written whole") {
  const test::TempDirectory directory;
  auto writer = open_writer(directory.path() / "t");
  const std::string label = "\"view_id\": " + json_quoted(std::string(3'000'000, 'x'));
  for (int n = 0; n < 3; ++n) writer->write(timed_event(label, n, 0));
  writer->close();
  CHECK(text_in(directory.path() / "t").size() > 9'000'000);
  CHECK(writer->lines() == 3);
}

TEST_CASE("JSON texts are ASCII, and lone surrogates are kept") {
  CHECK(json_quoted("a\"\\\n\x01") == "\"a\\\"\\\\\\n\\u0001\"");
  CHECK(json_quoted("\xC3\xA9\xE6\x97\xA5") == "\"\\u00e9\\u65e5\"");
  CHECK(json_quoted("\xF0\x9F\x98\x80") == "\"\\ud83d\\ude00\"");
  CHECK(json_quoted("\xED\xA0\x80") == "\"\\ud800\"");
  CHECK(json_quoted("\xFF\xC3") == "\"\\u00ff\\u00c3\"");  // No UTF-8: each byte by itself.
}

TEST_CASE("a line that a dead writer left unfinished is ended first") {
  const test::TempDirectory directory;
  std::ofstream(directory.path() / "t") << "{\"ts\": 1";
  for (int n = 0; n < 2; ++n) open_writer(directory.path() / "t")->write(timed_event("\"n\": 1", n, 0));
  const std::string text = text_in(directory.path() / "t");
  CHECK(text.starts_with("{\"ts\": 1\n{\"ts\": 0.0, "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("a disk that is full is told once, and the lines are counted") {
  auto writer = open_writer("/dev/full");
  for (int n = 0; n < 5; ++n) writer->write(timed_event("\"n\": 1", n, 0));
  writer->flush();
  writer->write(timed_event("\"n\": 1", 5, 0));
  writer->close();
  CHECK(writer->lost_lines() == 6);
  CHECK(writer->lines() == 0);
  CHECK(writer->take_complaint() == "trace /dev/full: lines are lost: No space left on device");
  CHECK(writer->take_complaint().empty());
}

TEST_CASE("a forked child begins with an empty queue and a thread of its own") {
  const test::TempDirectory directory;
  auto writer = open_writer(directory.path() / "t");
  for (int n = 0; n < 10; ++n) writer->write(timed_event("\"who\": \"parent\"", n, 0));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (int n = 0; n < 5; ++n) writer->write(timed_event("\"who\": \"child\"", n, 0));
    writer->close();
    _exit(writer->lines() == 5 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  writer->close();
  CHECK(writer->lines() == 10);
  const std::string text = text_in(directory.path() / "t");
  CHECK(std::count(text.begin(), text.end(), '\n') == 15);
}

}  // namespace lmemo
