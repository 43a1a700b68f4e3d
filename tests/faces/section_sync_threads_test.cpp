// Walks and syncs with many threads, for TSan: one store, one tree, several syncs at once, rows read meanwhile.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lmemo/sections.h"
#include "sources/directory_walk.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizer =
    R"({"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
  "pre_tokenizer": null, "post_processor": null, "decoder": null, "added_tokens": [],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "\n": 3, "ab": 4}, "merges": ["a b"]}})";

SectionRecipe small_recipe() {
  SectionRecipe recipe;
  const auto tokenizer = Tokenizer::from_json(kTokenizer);
  REQUIRE(tokenizer.ok());
  recipe.tokenizer = *tokenizer;
  recipe.tokenizer_identity = recipe.tokenizer->identity();
  return recipe;
}

// Every file has another content.
std::string content_of(size_t file) {
  std::string text;
  for (size_t rest = file + 1; rest > 0; rest /= 3) text += "abc"[rest % 3];
  return text + std::string(file % 40, 'a') + "\n";
}

void make_tree(const fs::path& folder, size_t files) {
  for (size_t i = 0; i < files; ++i) {
    const fs::path path =
        folder / ("d" + std::to_string(i % 17)) / std::to_string(i % 5) / (std::to_string(i) + ".txt");
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content_of(i);
  }
}

size_t number_of(const fs::path& path) { return std::stoul(path.stem().string()); }

TEST_CASE("syncs of one tree at once share the work, and every row is right") {
  const test::TempDirectory folder;
  const size_t files = static_cast<size_t>(test::scaled(600));
  make_tree(folder / "tree", files);
  auto opened = open_store(folder / "store");
  REQUIRE(opened.ok());
  const std::shared_ptr<Store> store = std::move(*opened);
  const SectionRecipe recipe = small_recipe();
  const SectionSource source{folder / "tree"};
  std::atomic<uint64_t> misses{0}, wrong{0}, sections{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        const SectionCache cache(store, folder / "store", recipe);
        const auto run = cache.sync({&source, 1}, {.sequence_len = 0, .threads = 3});
        if (!run.ok()) return;
        misses += run->stats().cache_misses;
        sections += run->size();
        for (size_t row = 0; row < run->size(); ++row) {
          const auto found = run->row(row);
          const auto expected = recipe.tokenizer->encode(content_of(number_of(run->path(row))));
          wrong += !found.ok() || !expected.ok() || found->ids() != *expected;
        }
      });
  }
  CHECK(sections == 4 * files);
  CHECK(wrong == 0);
  CHECK(misses >= files);
  CHECK(misses <= files + files / 10);
}

TEST_CASE("rows are read while the tree is synced again and files change") {
  const test::TempDirectory folder;
  const size_t files = static_cast<size_t>(test::scaled(200));
  make_tree(folder / "tree", files);
  auto opened = open_store(folder / "store");
  REQUIRE(opened.ok());
  const std::shared_ptr<Store> store = std::move(*opened);
  const SectionCache cache(store, folder / "store", small_recipe());
  const SectionSource source{folder / "tree"};
  const auto first = cache.sync({&source, 1}, {.sequence_len = 8});
  REQUIRE(first.ok());
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> failed{0}, rounds{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        do {
          for (size_t row = 0; row < first->size(); ++row) failed += !first->row(row).ok();
          ++rounds;
        } while (!is_over);
      });
    for (int round = 0; round < 3; ++round) {
      std::ofstream(folder / "tree" / "d0" / "0" / "0.txt", std::ios::app) << "abc\n";
      const auto again = cache.sync({&source, 1}, {.rehash = round == 1, .threads = 3});
      REQUIRE(again.ok());
      CHECK(again->stats().cache_hits == files - 1);
      CHECK(again->stats().cache_misses == 1);
    }
    is_over = true;
  }
  CHECK(rounds >= 2);
  CHECK(failed == 0);  // What was synced first is still stored, whatever became of the file.
}

TEST_CASE("walks of one tree at once list the same") {
  const test::TempDirectory folder;
  const size_t files = static_cast<size_t>(test::scaled(500));
  make_tree(folder.path(), files);
  std::atomic<uint64_t> different{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        const auto listing = walk_sources(folder.path(), {.threads = 4});
        different += !listing.ok() || listing->size() != files;
        for (size_t file = 1; listing.ok() && file < listing->size(); ++file)
          different += listing->path(file - 1) >= listing->path(file);
      });
  }
  CHECK(different == 0);
}

}  // namespace
}  // namespace lmemo
