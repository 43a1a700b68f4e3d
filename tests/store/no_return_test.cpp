// What was overwritten or removed does not come back, whatever a dead rewriter left behind (promises 4 and 10).
#include <doctest/doctest.h>

#include <filesystem>

#include "lmemo/store.h"
#include "support/store_support.h"
#include "support/temp_directory.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

const Key kVictim = *Key::of("forward", {{"name", "victim"}});
const ScanFilter kForward{"forward", {}};

std::unique_ptr<Store> open(const TempDirectory& directory) {
  StoreOptions options;
  options.max_bytes = 0;
  return std::move(*open_store(directory / "store", options));
}

void put_and_flush(Store& store, const std::string& value) {
  REQUIRE(store.put(kVictim, bytes_of(value)).ok());
  for (int number = 0; number < 20; ++number)
    REQUIRE(store.put(key_of("tokens", number), bytes_of(value_of(100))).ok());
  REQUIRE(store.flush().ok());
}

fs::path only_segment(const TempDirectory& directory) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(directory / "store" / "segments"))
    all.push_back(entry.path());
  REQUIRE(all.size() == 1);
  return all[0];
}

TEST_CASE("an overwritten value does not come back when its successor is removed") {
  const TempDirectory directory;
  {
    const auto store = open(directory);
    put_and_flush(*store, "first");
    REQUIRE(store->put(kVictim, bytes_of("second")).ok());
    REQUIRE(store->flush().ok());
    CHECK(store->erase_matching(kForward)->entries == 1);
    CHECK_FALSE(found(*store, kVictim));
  }
  CHECK_FALSE(found(*open(directory), kVictim));
}

TEST_CASE("a segment that a dead rewriter had copied but not unlinked brings nothing back") {
  const TempDirectory directory;
  {
    const auto store = open(directory);
    put_and_flush(*store, "first");
    REQUIRE(store->erase(key_of("tokens", 1)).ok());
  }
  const fs::path old_segment = directory / "old";
  fs::path name;
  for (const auto& entry : fs::directory_iterator(directory / "store" / "segments"))
    if (name.empty() || entry.file_size() > fs::file_size(name)) name = entry.path();
  fs::copy_file(name, old_segment);
  REQUIRE(open(directory)->compact().ok());
  REQUIRE_FALSE(fs::exists(name));
  fs::copy_file(old_segment, name);  // As if the unlink had not come.
  {
    const auto store = open(directory);
    CHECK(found(*store, kVictim) == "first");
    CHECK(store->erase_matching(kForward)->entries == 1);
  }
  CHECK_FALSE(found(*open(directory), kVictim));
}

TEST_CASE("a private file that a dead rewriter left brings nothing back") {
  const TempDirectory directory;
  {
    const auto store = open(directory);
    put_and_flush(*store, "first");
    const fs::path copy = directory / "copy";
    const fs::path name = only_segment(directory);
    fs::copy_file(name, copy);
    REQUIRE(store->put(kVictim, bytes_of("second")).ok());
    REQUIRE(store->compact().ok());
    REQUIRE_FALSE(fs::exists(name));
    // A rewriter in another process died here, with a copy of what there was before.
    fs::copy_file(copy, directory / "store" / "writing" / name.stem().concat(".part"));
    CHECK(store->erase_matching(kForward)->entries == 1);
  }
  CHECK_FALSE(found(*open(directory), kVictim));
  CHECK(fs::is_empty(directory / "store" / "writing"));
}

}  // namespace
}  // namespace lmemo::test
