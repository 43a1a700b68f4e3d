// Many threads take neighbouring parts of one file, write all over them and give them back.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "base/file_system.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

using namespace lmemo;
using namespace lmemo::test;

TEST_CASE("threads that write to neighbouring parts always start from the file's bytes") {
  constexpr size_t kParts = 12, kPartBytes = 1500;  // Two or three to a page.
  const TempDirectory directory;
  std::string text(kParts * kPartBytes, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  std::ofstream(directory / "file", std::ios::binary) << text;
  const auto file = *real_file_system().map(directory / "file");
  std::atomic<uint64_t> taken{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int round = 0; round < scaled(5000); ++round) {
        const size_t number = random() % kParts;
        const Bytes part = file->bytes().subspan(number * kPartBytes, kPartBytes);
        const OwnPart own = file->own_part(part);
        if (own.data() == nullptr) continue;
        ++taken;
        const std::string_view expected = std::string_view(text).substr(number * kPartBytes, kPartBytes);
        if (std::memcmp(own.data(), expected.data(), kPartBytes) != 0) ++wrong;
        const char letter = static_cast<char>('A' + random() % 26);
        std::memset(own.data(), letter, kPartBytes);
        if (std::string_view(reinterpret_cast<const char*>(own.data()), kPartBytes)
                .find_first_not_of(letter) != std::string_view::npos)
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(taken > 100);
  CHECK(text_of(file->bytes()) == text);
}
