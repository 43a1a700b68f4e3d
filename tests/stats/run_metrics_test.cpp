#include "stats/run_metrics.h"

#include <doctest/doctest.h>

#include <fstream>

#include "support/temp_directory.h"

namespace lmemo {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

RunRecord run_of(int number) {
  RunRecord run;
  run.run_id = new_run_id(number * kSecond);
  run.started_at_ns = number * kSecond;
  run.source = number % 2 == 0 ? "even's \"tree\"" : "odd";
  run.tokenizer = "t";
  run.total_sections = 10, run.cache_hits = 7, run.cache_misses = 3;
  run.total_tokenize_seconds = 0.5;
  run.tokenized_tokens = 100;
  run.miss_reasons = {{"new", 2}, {"edited", 1}};
  return run;
}

TEST_CASE("runs come back newest first, as they were recorded") {
  const test::TempDirectory folder;
  const auto file = folder / "metrics.db";
  CHECK(read_runs(file)->empty());
  CHECK_FALSE(std::filesystem::exists(file));
  for (int number = 1; number <= 5; ++number) REQUIRE(record_run(file, run_of(number)).ok());
  const auto runs = read_runs(file);
  REQUIRE(runs.ok());
  REQUIRE(runs->size() == 5);
  CHECK(runs->front().started_at_ns == 5 * kSecond);
  CHECK(runs->front().miss_reasons == std::map<std::string, uint64_t>{{"new", 2}, {"edited", 1}});
  CHECK(runs->front().cache_hits == 7);
  CHECK(read_runs(file, {.limit = 2})->size() == 2);
  CHECK(read_runs(file, {.source = "even's \"tree\""})->size() == 2);
  CHECK(read_runs(file, {.since_ns = 4 * kSecond})->size() == 2);
  CHECK(read_runs(file, {.face = "chunks"})->empty());
  CHECK(seconds_per_token(file, "t") == doctest::Approx(0.005));
  CHECK(seconds_per_token(file, "other") == 0);
}

TEST_CASE("a damaged history is set aside, and a new one begins") {
  const test::TempDirectory folder;
  const auto file = folder / "metrics.db";
  std::ofstream(file) << std::string(5000, 'x');
  CHECK_FALSE(read_runs(file).ok());
  CHECK(record_run(file, run_of(1)).ok());
  CHECK(read_runs(file)->size() == 1);
  CHECK(std::filesystem::exists(folder / "metrics.db.damaged"));
}

TEST_CASE("run ids sort by time and are not repeated") {
  CHECK(new_run_id(kSecond).size() == 26);
  CHECK(new_run_id(kSecond) < new_run_id(2 * kSecond));
  CHECK(new_run_id(kSecond) != new_run_id(kSecond));
}

}  // namespace
}  // namespace lmemo
