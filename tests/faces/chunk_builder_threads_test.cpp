#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "faces/chunks/builder.h"
#include "faces/chunks/plan_scan.h"
#include "faces/chunks/set_status.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

using namespace lmemo;
using namespace lmemo::chunks;

namespace {

constexpr std::string_view kTokenizer = R"({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
  "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "bee": 2, "sea": 3, "deer": 4}}
})";

struct Corpus {
  explicit Corpus(size_t documents) {
    tokenizer = Tokenizer::from_json(kTokenizer).value();
    std::mt19937 random(3);
    std::ofstream lines(directory.path() / "corpus.jsonl");
    for (size_t document = 0; document < documents; ++document) {
      lines << R"({"text": ")";
      for (size_t words = random() % 90; words > 0; --words)
        lines << std::array{"a ", "bee ", "sea ", "deer ", "else "}[random() % 5];
      lines << "\"}\n";
    }
  }

  // A plan of its own for each directory.
  Plan plan_in(const SetPaths& paths) const {
    Plan plan;
    plan.parameters.sequence_length = 64;
    plan.parameters.vocab_size = 5;
    plan.parameters.tokenizer = tokenizer->identity();
    plan.chunk_bytes = 2000;
    ScanReport report;
    REQUIRE(paths.make().ok());
    auto part = scan(plan, {{directory.path() / "corpus.jsonl", SourceType::json_lines}}, report, {});
    REQUIRE(part.ok());
    REQUIRE(append_to_plan(paths.directory, plan, std::move(part).value()).ok());
    return plan;
  }

  test::TempDirectory directory;
  std::shared_ptr<const Tokenizer> tokenizer;
};

std::vector<uint64_t> all_of(const Plan& plan) {
  std::vector<uint64_t> numbers(plan.entries.size());
  for (size_t at = 0; at < numbers.size(); ++at) numbers[at] = at;
  return numbers;
}

std::string content_of(const Path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE(
    "builders with many threads, beside one another and beside a verifier, make the bytes of one thread") {
  const Corpus corpus(static_cast<size_t>(test::scaled(400, 200)));
  const SetPaths alone{corpus.directory.path() / "alone"}, shared{corpus.directory.path() / "shared"};
  const Plan plan = corpus.plan_in(alone);
  REQUIRE(plan.entries.size() > 3);
  const auto one = build_chunks(alone, plan, *corpus.tokenizer, all_of(plan), {.workers = 1}, {});
  REQUIRE(one.ok());
  CHECK(one->built == plan.entries.size());
  CHECK(one->counts.tokens == one->counts.tokens_in);

  const Plan same = corpus.plan_in(shared);
  std::atomic<uint64_t> built = 0, reports = 0;
  std::atomic<bool> is_wrong = false, is_over = false;
  Watch watch;
  watch.on_progress = [&](const Progress&) { ++reports; };
  std::vector<std::thread> threads;
  for (int builder = 0; builder < 2; ++builder) {
    threads.emplace_back([&] {
      const auto report = build_chunks(shared, same, *corpus.tokenizer, all_of(same), {.workers = 3}, watch);
      if (report.ok() && report->failed.empty())
        built += report->built;
      else
        is_wrong = true;
    });
  }
  std::thread verifier([&] {
    while (!is_over) {
      const auto status = status_of(shared, same, {.check = Check::all, .workers = 2}, {});
      if (!status.ok() || !status->damaged.empty() || !status->with(ChunkState::stale).empty())
        is_wrong = true;
    }
  });
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  verifier.join();

  CHECK(!is_wrong);
  CHECK(built == same.entries.size());
  CHECK(reports > 0);
  const auto status = status_of(shared, same, {.check = Check::all, .workers = 2}, {});
  REQUIRE(status.ok());
  CHECK(status->is_complete());
  CHECK(status->checked == same.entries.size());
  for (const uint64_t number : all_of(same))
    CHECK(content_of(shared.chunk(number)) == content_of(alone.chunk(number)));
}

TEST_CASE("a build that is stopped in the middle gives up all its claims") {
  const Corpus corpus(static_cast<size_t>(test::scaled(400, 200)));
  const SetPaths paths{corpus.directory.path() / "set"};
  const Plan plan = corpus.plan_in(paths);
  std::atomic<int> asked = 0;
  Watch watch;
  watch.should_stop = [&] { return ++asked > 20; };
  const auto stopped = build_chunks(paths, plan, *corpus.tokenizer, all_of(plan), {.workers = 4}, watch);
  REQUIRE(!stopped.ok());
  CHECK(stopped.error().code == ErrorCode::interrupted);
  const auto status = status_of(paths, plan, {}, {});
  REQUIRE(status.ok());
  CHECK(status->claimed.empty());
  CHECK(status->damaged.empty());
  const auto rest = build_chunks(paths, plan, *corpus.tokenizer, all_of(plan), {.workers = 4}, {});
  REQUIRE(rest.ok());
  CHECK(rest->built + rest->by_others == plan.entries.size());
}
