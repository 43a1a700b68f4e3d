#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <random>
#include <string>

#include "faces/forward/reuse_distance.h"
#include "lmemo/forward.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

std::string line(const std::string& prompt, bool is_hit, double wall_ms, const std::string& more = "",
                 const std::string& view = "base", const std::string& probe = "\"p\"") {
  return "{\"ts\": 10.5, \"probe\": " + probe + ", \"view_id\": \"" + view + "\", \"prompt_hash\": \"" +
         prompt + "\", \"top_k\": 256, \"op\": \"dist\", \"wall_ms\": " + std::to_string(wall_ms) +
         ", \"hit\": " + (is_hit ? "true" : "false") + more + "}\n";
}

TraceReport report_of(const std::string& text, size_t slowest = 10) {
  const test::TempDirectory directory;
  std::ofstream(directory.path() / "t", std::ios::binary) << text;
  auto report = analyse_trace(directory.path() / "t", slowest);
  REQUIRE(report.ok());
  return std::move(report).value();
}

// A cache that is as plain as can be.
uint64_t hits_of_a_cache(const std::vector<uint32_t>& calls, size_t size) {
  std::list<uint32_t> kept;
  uint64_t hits = 0;
  for (const uint32_t call : calls) {
    const auto place = std::find(kept.begin(), kept.end(), call);
    if (place != kept.end()) {
      ++hits;
      kept.erase(place);
    }
    kept.push_front(call);
    if (kept.size() > size) kept.pop_back();
  }
  return hits;
}

}  // namespace

TEST_CASE("the hits of every cache size are those of a real cache") {
  std::mt19937 chance(3);
  for (const unsigned different : {1u, 2u, 7u, 40u}) {
    std::vector<uint32_t> calls(300);
    for (uint32_t& call : calls) call = chance() % different;
    const std::vector<uint64_t> by_size = hits_by_cache_size(calls, different);
    uint64_t sum = 0;
    for (size_t size = 1; size <= different; ++size) {
      sum += by_size[size - 1];
      CHECK(sum == hits_of_a_cache(calls, size));
    }
  }
  CHECK(hits_by_cache_size({}, 0).empty());
}

TEST_CASE("hits, time spent and time saved, by probe, view and op") {
  const TraceReport report =
      report_of(line("a", false, 100) + line("a", true, 1) + line("b", false, 300) + line("b", true, 1) +
                line("b", true, 2, ", \"waited\": true", "ft", "null") +
                line("c", false, 7, ", \"error\": \"OSError\""));
  CHECK(report.lines == 6);
  CHECK(report.malformed == 0);
  CHECK(report.total.hits == 3);
  CHECK(report.total.misses == 2);
  CHECK(report.total.failures == 1);
  CHECK(report.total.waited == 1);
  CHECK(report.total.hit_rate() == doctest::Approx(0.6));
  CHECK(report.total.spent_seconds == doctest::Approx(0.411));
  // a: 99, b: 299; the hit of the other view has no miss of its own and costs the mean of the op, 200.
  CHECK(report.total.saved_seconds == doctest::Approx((99 + 299 + 198) / 1000.0));
  CHECK(report.by_view.at("ft").hits == 1);
  CHECK(report.by_view.at("base").lookups() == 4);
  CHECK(report.by_probe.at("").waited == 1);
  CHECK(report.by_probe.at("p").failures == 1);
  CHECK(report.by_op.at("dist").lookups() == 5);
  CHECK(report.distinct_calls == 3);
  CHECK(report.first_time_seconds == 10.5);
}

TEST_CASE("the curve doubles the size and ends where more does not help") {
  std::string text;
  for (int round = 0; round < 3; ++round)
    for (int call = 0; call < 5; ++call) text += line(std::to_string(call), false, 1);
  text += line("once", false, 1);
  const TraceReport report = report_of(text);
  REQUIRE(report.curve.size() == 4);
  CHECK(report.curve[0].entries == 1);
  CHECK(report.curve[2].entries == 4);
  CHECK(report.curve[2].hits == 0);
  CHECK(report.curve[3].entries == 5);
  CHECK(report.curve[3].hits == 10);
  CHECK(report.curve[3].hit_rate == doctest::Approx(10.0 / 16));
}

TEST_CASE("the slowest calls are named with their line") {
  std::string text;
  for (int call = 0; call < 100; ++call) text += line(std::to_string(call), false, (call * 37) % 100);
  const TraceReport report = report_of("\n" + text, 3);
  REQUIRE(report.slowest.size() == 3);
  CHECK(report.slowest[0].wall_ms == 99);
  CHECK(report.slowest[1].wall_ms == 98);
  CHECK(report.slowest[0].prompt_hash == std::to_string(report.slowest[0].line - 2));
  CHECK(report_of(text, 0).slowest.empty());
}

TEST_CASE("lines that are none are counted and do not disturb the others") {
  const std::string good = line("a", false, 1);
  const char* const bad[] = {"{\"ts\": 2, \"pro", "nonsense",         "{}", "[]", "null", "{\"ts\": \"now\"}",
                             "\xff\xfe",          "{\"hit\": true} x"};
  std::string text;
  for (const char* const wrong : bad) text += good + wrong + "\n\n";
  // The last line lacks its end.
  const TraceReport report = report_of(text + good.substr(0, good.size() - 1));
  CHECK(report.malformed == std::size(bad));
  CHECK(report.total.misses == std::size(bad) + 1);
  CHECK(report.first_malformed_line == 2);
  CHECK(report.first_complaint == "a text without an end at column 15");
  CHECK(report_of("").lines == 0);
  CHECK(report_of(std::string(40 << 20, 'x') + "\n" + good).malformed == 1);
  CHECK(report_of(line("a", false, -1)).first_complaint == "wall_ms is negative");
}

TEST_CASE("texts are told apart by what they mean, not by how they are written") {
  const std::string escaped =
      "{\"extra\": {\"deep\": [1, \"}\", null]}, "
      "\"hit\":false,\"op\":\"d\\u0069st\",\"view_id\":\"b\\u0061se\",\"prompt_hash\":\"a\","
      "\"top_k\":256,\"wall_ms\":1e0,\"ts\":1,\"probe\":\"\\ud83d\\ude00\\ud800\"}";
  const TraceReport report = report_of(line("a", true, 1) + escaped);
  CHECK(report.malformed == 0);
  CHECK(report.distinct_calls == 1);
  CHECK(report.by_probe.contains("\xF0\x9F\x98\x80\xED\xA0\x80"));
}

TEST_CASE("names that are no texts are names as they are written, and no error is no failure") {
  const TraceReport report = report_of(
      "{\"ts\": 1, \"op\": null, \"view_id\": 3, \"prompt_hash\": \"a\", \"top_k\": null, \"wall_ms\": 1, "
      "\"hit\": false, "
      "\"error\": null}\n");
  CHECK(report.malformed == 0);
  CHECK(report.total.misses == 1);
  CHECK(report.by_op.contains("null"));
  CHECK(report.by_view.contains("3"));
}

TEST_CASE("a file that is not there is an error with its name") {
  const auto report = analyse_trace("/nowhere/trace.jsonl");
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().describe() ==
        "io_error: cannot read the trace /nowhere/trace.jsonl: No such file or directory");
}

}  // namespace lmemo
