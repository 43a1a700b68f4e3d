// Parts of a file that may be written to: what one holder writes, nobody else ever sees.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "base/file_system.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

std::string random_text(size_t byte_count) {
  std::mt19937_64 random(byte_count);
  std::string text(byte_count, '\0');
  for (char& letter : text) letter = static_cast<char>('a' + random() % 26);
  return text;
}

void write_file(const Path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::shared_ptr<const MappedFile> mapped(const Path& path) {
  auto mapping = real_file_system().map(path);
  REQUIRE(mapping.ok());
  return *mapping;
}

bool holds(const OwnPart& part, std::string_view text) {
  return std::memcmp(part.data(), text.data(), text.size()) == 0;
}

uint64_t own_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8));
  return 0;
}

size_t mappings_of(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(name) != std::string::npos;
  return count;
}

}  // namespace

TEST_CASE("what is written to an own part reaches neither the file nor the next holder") {
  const TempDirectory directory;
  const std::string text = random_text(100'000);
  write_file(directory / "file", text);
  const auto file = mapped(directory / "file");
  const Bytes part = file->bytes().subspan(12'345, 50'000);
  {
    OwnPart own = file->own_part(part);
    REQUIRE(own.data() != nullptr);
    CHECK(holds(own, std::string_view(text).substr(12'345, 50'000)));
    CHECK(file->own_part(part.subspan(10, 10)).data() == nullptr);  // One holder at a time.
    CHECK(file->own_part(file->bytes().subspan(12'000, 346)).data() == nullptr);
    CHECK(file->own_part(file->bytes().subspan(62'344, 1)).data() == nullptr);
    std::memset(own.data(), '!', part.size());
    CHECK(text_of(file->bytes()) == text);
    CHECK(text_of(mapped(directory / "file")->bytes()) == text);
  }
  CHECK(holds(file->own_part(part), std::string_view(text).substr(12'345, 50'000)));
  CHECK(file->own_part(Bytes(std::as_bytes(std::span(text)))).data() == nullptr);  // Not of this file.
  CHECK(file->own_part(part.first(0)).data() == nullptr);
}

TEST_CASE("holders of neighbouring parts never see one another, whatever pages they share") {
  const TempDirectory directory;
  const std::string text = random_text(5 * 4096 + 1000);
  write_file(directory / "file", text);
  const auto file = mapped(directory / "file");
  struct Holder {
    OwnPart own;
    std::string expected;
  };
  std::map<size_t, Holder> holders;  // By offset.
  std::mt19937 random(7);
  for (int step = 0; step < scaled(20'000); ++step) {
    const size_t choice = random() % 3;
    if (choice == 0) {
      const size_t offset = random() % text.size();
      const size_t length =
          1 + random() % std::min<size_t>(text.size() - offset, random() % 2 == 0 ? 100 : 9000);
      OwnPart own = file->own_part(file->bytes().subspan(offset, length));
      const bool is_free = std::none_of(holders.begin(), holders.end(), [&](const auto& held) {
        return held.first < offset + length && offset < held.first + held.second.expected.size();
      });
      REQUIRE((own.data() != nullptr) == is_free);
      if (!is_free) continue;
      REQUIRE(holds(own, std::string_view(text).substr(offset, length)));
      holders.emplace(offset, Holder{std::move(own), text.substr(offset, length)});
      continue;
    }
    if (holders.empty()) continue;
    const auto chosen = std::next(holders.begin(), static_cast<long>(random() % holders.size()));
    Holder& holder = chosen->second;
    REQUIRE(holds(holder.own, holder.expected));
    if (choice == 1) {
      holders.erase(chosen);
    } else {
      const size_t from = random() % holder.expected.size();
      const size_t length = 1 + random() % (holder.expected.size() - from);
      const char letter = static_cast<char>('A' + random() % 26);
      std::memset(holder.own.data() + from, letter, length);
      holder.expected.replace(from, length, length, letter);
    }
  }
  CHECK(text_of(file->bytes()) == text);
}

TEST_CASE("memory that was written to is given back with the part, and mappings with the file") {
  const TempDirectory directory;
  const std::string text = random_text(size_t{32} << 20);
  write_file(directory / "file", text);
  auto file = mapped(directory / "file");
  { OwnPart warm = file->own_part(file->bytes().first(10)); }
  const uint64_t before = own_kilobytes();
  {
    OwnPart own = file->own_part(file->bytes());
    std::memset(own.data(), 1, text.size());
    CHECK(own_kilobytes() > before + (30 << 10));
  }
  CHECK(own_kilobytes() < before + (4 << 10));
  const std::string name = (directory / "file").string();
  CHECK(mappings_of(name) == 2);
  file.reset();
  CHECK(mappings_of(name) == 0);
}

TEST_CASE("a part outlives the file's name, and a file that is gone or another one lends nothing") {
  const TempDirectory directory;
  write_file(directory / "one", "the first file");
  write_file(directory / "two", "the second one");
  const auto one = mapped(directory / "one"), two = mapped(directory / "two");
  OwnPart own = one->own_part(one->bytes());
  std::filesystem::remove(directory / "one");
  std::memcpy(own.data(), "THE", 3);
  CHECK(holds(own, "THE first file"));
  CHECK(text_of(one->bytes()) == "the first file");
  std::filesystem::rename(directory / "two", directory / "elsewhere");
  CHECK(two->own_part(two->bytes()).data() == nullptr);
  write_file(directory / "three", "the third file");
  const auto three = mapped(directory / "three");
  std::filesystem::rename(directory / "elsewhere", directory / "three");
  CHECK(three->own_part(three->bytes()).data() == nullptr);
}

TEST_CASE("a forked child and its parent each write to their own") {
  const TempDirectory directory;
  const std::string text = random_text(20'000);
  write_file(directory / "file", text);
  const auto file = mapped(directory / "file");
  std::optional<OwnPart> own = file->own_part(file->bytes().first(10'000));
  std::memset(own->data(), 'P', 10'000);
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_right = holds(*own, std::string(10'000, 'P'));
    std::memset(own->data(), 'C', 10'000);
    own.reset();
    is_right &= holds(file->own_part(file->bytes()), text);
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(holds(*own, std::string(10'000, 'P')));
  own.reset();
  CHECK(holds(file->own_part(file->bytes()), text));
}
