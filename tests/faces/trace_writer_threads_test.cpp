#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/tick_clock.h"
#include "faces/forward/trace_writer.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::unique_ptr<TraceWriter> open_writer(const std::filesystem::path& path) {
  auto writer = TraceWriter::open(path);
  REQUIRE(writer.ok());
  return std::move(writer).value();
}

std::string label_of(const std::string& op) { return trace_label("\"v\"", "\"h\"", "1", json_quoted(op)); }

}  // namespace

TEST_CASE("threads write, flush and close at once; every line is whole and none is written twice") {
  const test::TempDirectory directory;
  const int events = static_cast<int>(test::scaled(3000));
  auto writer = open_writer(directory.path() / "t");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int n = 0; n < events; ++n) {
        const std::string label = label_of(std::to_string(thread) + "-" + std::to_string(n));
        const uint64_t now = ticks_now();
        writer->write({.label = label, .end_ticks = now, .wall_ticks = 5, .flags = TraceEvent::hit});
        if (n % 500 == 0) writer->flush();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::thread closer([&] { writer->close(); });
  writer->close();
  closer.join();
  const std::vector<std::string> lines = lines_of(directory.path() / "t");
  CHECK(lines.size() == static_cast<size_t>(4 * events));
  CHECK(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size());
  for (const std::string& line : lines) {
    CHECK(line.starts_with("{\"ts\": "));
    CHECK(line.ends_with(", \"hit\": true}"));
  }
}

TEST_CASE("many writers come and go") {
  const test::TempDirectory directory;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int n = 0; n < 20; ++n) {
        auto writer = open_writer(directory.path() / std::to_string(thread));
        writer->write({.label = label_of(std::to_string(n)), .end_ticks = ticks_now()});
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int thread = 0; thread < 4; ++thread)
    CHECK(lines_of(directory.path() / std::to_string(thread)).size() == 20);
}

}  // namespace lmemo
