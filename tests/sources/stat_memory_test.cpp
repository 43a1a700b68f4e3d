#include "sources/stat_memory.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/sha256.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

const Digest kOwner = sha256(bytes_of("owner"));

StatEntry entry_of(int number) {
  StatEntry entry;
  entry.stamp = {static_cast<uint64_t>(number), number * 10, number * 11, 77};
  entry.content = sha256(bytes_of("content " + std::to_string(number)));
  entry.note = sha256(bytes_of("note " + std::to_string(number)));
  entry.number = static_cast<uint64_t>(number) * 3;
  return entry;
}

void write_three(const std::filesystem::path& file) {
  StatMemoryWriter writer(kOwner, "a label");
  int number = 0;
  for (const char* path : {"a/b", "c", "d/\xFF"}) writer.add(path, entry_of(++number));
  REQUIRE(writer.write(file).ok());
}

std::string bytes_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_CASE("what was written comes back, for its owner alone") {
  const test::TempDirectory folder;
  write_three(folder / "m");
  const auto memory = StatMemory::load(folder / "m", kOwner);
  REQUIRE(memory);
  CHECK(memory->label() == "a label");
  REQUIRE(memory->size() == 3);
  CHECK(memory->path(2) == "d/\xFF");
  CHECK(memory->entry(1).content == entry_of(2).content);
  CHECK(memory->entry(1).note == entry_of(2).note);
  CHECK(memory->entry(2).number == 9);
  CHECK(memory->entry(0).is_trusted(entry_of(1).stamp));
  CHECK_FALSE(memory->entry(0).is_trusted(entry_of(2).stamp));
  CHECK_FALSE(StatMemory::load(folder / "m", sha256(bytes_of("other"))));
  CHECK_FALSE(StatMemory::load(folder / "none", kOwner));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a cursor finds what both sides have") {
  const test::TempDirectory folder;
  write_three(folder / "m");
  const auto memory = StatMemory::load(folder / "m", kOwner);
  StatMemoryCursor cursor(memory.get());
  CHECK_FALSE(cursor.at("a"));
  CHECK(cursor.at("a/b") == 0);
  CHECK_FALSE(cursor.at("b"));
  CHECK(cursor.at("d/\xFF") == 2);
  CHECK_FALSE(cursor.at("e"));
  CHECK_FALSE(StatMemoryCursor(nullptr).at("a"));
}

TEST_CASE("a memory that was cut or changed anywhere is no memory") {
  const test::TempDirectory folder;
  write_three(folder / "m");
  const std::string whole = bytes_in(folder / "m");
  const auto is_accepted = [&](const std::string& bytes) {
    std::ofstream(folder / "x", std::ios::binary | std::ios::trunc) << bytes;
    return StatMemory::load(folder / "x", kOwner) != nullptr;
  };
  CHECK(is_accepted(whole));
  for (size_t at = 0; at < whole.size(); ++at) {
    CHECK_FALSE(is_accepted(whole.substr(0, at)));
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    CHECK_FALSE(is_accepted(flipped));
  }
  CHECK_FALSE(is_accepted(whole + "x"));
}

TEST_CASE("a file changed within two seconds of being looked at is racy, and so is one from the future") {
  const int64_t now = int64_t{1'700'000'000} * 1'000'000'000;
  CHECK(is_racy({1, now - 1'000'000'000, 0, 1}, now));
  CHECK(is_racy({1, 0, now - 1'000'000'000, 1}, now));
  CHECK(is_racy({1, now + 5'000'000'000, 0, 1}, now));
  CHECK_FALSE(is_racy({1, now - 3'000'000'000, now - 3'000'000'000, 1}, now));
}

}  // namespace
}  // namespace lmemo
