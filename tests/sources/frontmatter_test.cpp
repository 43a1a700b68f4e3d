#include "sources/frontmatter.h"

#include <doctest/doctest.h>

namespace lmemo {
namespace {

const std::string kFull =
    "---\ndlm_id: 01KPQ1FF\nother: [1, 2]\ntraining:\n  sequence_len: 512\n  sources_policy: strict\n  "
    "sources:\n"
    "    - path: src\n      include: [\"**/*.py\"]\n      exclude: x/**\n      max_bytes_per_file: 64KiB\n   "
    "   max_files: 7\n    - docs\n"
    "  cache:\n    enabled: false\n    max_bytes: 1GiB\n    prune_older_than_days: "
    "30\n---\n::instruction::\nbody\n";

TEST_CASE("a full document is read") {
  const auto parsed = parse_frontmatter(kFull);
  REQUIRE(parsed.ok());
  CHECK(parsed->id == "01KPQ1FF");
  CHECK(parsed->sequence_len == 512);
  CHECK(parsed->is_strict);
  REQUIRE(parsed->sources.size() == 2);
  CHECK(parsed->sources[0].path == "src");
  CHECK(parsed->sources[0].include == std::vector<std::string>{"**/*.py"});
  CHECK(parsed->sources[0].exclude == std::vector<std::string>{"x/**"});
  CHECK(parsed->sources[0].max_bytes_per_file == 65536);
  CHECK(parsed->sources[0].max_files == 7);
  CHECK(parsed->sources[1].path == "docs");
  CHECK(parsed->cache_enabled == false);
  CHECK(parsed->cache_max_bytes == uint64_t{1} << 30);
  CHECK(parsed->prune_older_than_days == 30);
}

TEST_CASE("no frontmatter is an empty one; a mistake is named with its line") {
  CHECK(parse_frontmatter("just text")->sources.empty());
  CHECK(parse_frontmatter("")->sources.empty());
  CHECK(parse_frontmatter("---\n---\n")->sources.empty());
  CHECK_FALSE(parse_frontmatter("---\na: b\n").ok());
  CHECK_FALSE(parse_frontmatter("---\na: [\n---\n").ok());
  CHECK_FALSE(parse_frontmatter("---\n- a\n---\n").ok());
  const auto wrong = parse_frontmatter("---\ntraining:\n  sequence_len: many\n---\n");
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().message ==
        "frontmatter, line 3: training.sequence_len: found \"many\"; expected a whole number");
  CHECK_FALSE(parse_frontmatter("---\ntraining:\n  sources: 5\n---\n").ok());
  CHECK(parse_frontmatter("---\ntraining:\n  sources: [{include: a}]\n---\n").error().message ==
        "frontmatter, line 3: training.sources: found a mapping; expected one with a path");
  CHECK_FALSE(parse_frontmatter("---\ntraining:\n  sources_policy: lax\n---\n").ok());
}

TEST_CASE("a name of a source or of the cache that means nothing is told, others are somebody else's") {
  const auto parsed = parse_frontmatter(
      "---\ntraining:\n  lora: 5\n  sources:\n    - {path: a, inclde: b}\n  cache:\n    enabeld: "
      "false\n---\n");
  REQUIRE(parsed.ok());
  CHECK(parsed->unknown ==
        std::vector<std::string>{
            "frontmatter, line 5: training.sources: \"inclde\" is not known and has no effect; "
            "known are path, include, exclude, max_bytes_per_file, max_files",
            "frontmatter, line 7: training.cache: \"enabeld\" is not known and has no effect; "
            "known are enabled, max_bytes, prune_older_than_days"});
  CHECK(parse_frontmatter(kFull)->unknown.empty());
}

TEST_CASE("a document cut or changed anywhere is read or refused, however deep") {
  for (size_t at = 0; at < kFull.size(); ++at) {
    (void)parse_frontmatter(kFull.substr(0, at)).ok();
    for (const char byte : {'\0', '[', '\n', ':', '&', '\xFF'}) {
      std::string changed = kFull;
      changed[at] = byte;
      (void)parse_frontmatter(changed).ok();
    }
  }
  CHECK_FALSE(parse_frontmatter("---\n" + std::string(100'000, '[') + "\n---\n").ok());
  CHECK_FALSE(parse_frontmatter("---\n" + std::string(100'000, '-') + " a\n---\n").ok());
  std::string deep = "---\n";
  for (int level = 0; level < 500; ++level) deep += std::string(static_cast<size_t>(level), ' ') + "a:\n";
  CHECK_FALSE(parse_frontmatter(deep + "---\n").ok());
}

}  // namespace
}  // namespace lmemo
