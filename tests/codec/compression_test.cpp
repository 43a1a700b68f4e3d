#include "codec/compression.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace lmemo {
namespace {

constexpr Compression kAll[] = {Compression::none, Compression::lz4, Compression::zstd};
constexpr CompressionLevel kLevels[] = {CompressionLevel::fast, CompressionLevel::standard,
                                        CompressionLevel::max};

std::string text_like_bytes(size_t count) {
  std::mt19937_64 random(count);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>('a' + random() % 7 * (random() % 3));
  return bytes;
}

std::vector<std::byte> compressed(Compression compression, CompressionLevel level, std::string_view text) {
  std::vector<std::byte> out(max_compressed_bytes(compression, text.size()));
  const auto written = compress(compression, level, bytes_of(text), out);
  REQUIRE(written.ok());
  out.resize(*written);
  return out;
}

TEST_CASE("what was compressed comes back, at every level and size") {
  for (const Compression compression : kAll)
    for (const CompressionLevel level : kLevels)
      for (const size_t count : {0, 1, 2, 15, 64, 1000, 70'000}) {
        const std::string text = text_like_bytes(count);
        const auto small = compressed(compression, level, text);
        std::string back(count, '?');
        REQUIRE(decompress(compression, small, std::as_writable_bytes(std::span(back))).ok());
        CHECK(back == text);
        if (compression != Compression::none && count >= 1000) CHECK(small.size() < count);
      }
}

TEST_CASE("a higher level makes token ids smaller, whatever level the thread used before") {
  std::mt19937_64 random(7);
  std::string ids;
  while (ids.size() < 500'000) {  // Phrases that come again, and ids of which small ones are more frequent.
    if (ids.size() > 20'000 && random() % 6 == 0) {
      ids += ids.substr(ids.size() - 2 * (1 + random() % 10'000), 2 * (3 + random() % 10));
    } else {
      const uint64_t id = random() % (1 + random() % (1 + random() % 50'000));
      ids += {static_cast<char>(id & 255), static_cast<char>(id >> 8)};
    }
  }
  for (const Compression compression : {Compression::lz4, Compression::zstd}) {
    const size_t fast = compressed(compression, CompressionLevel::fast, ids).size();
    const size_t most = compressed(compression, CompressionLevel::max, ids).size();
    const size_t standard = compressed(compression, CompressionLevel::standard, ids).size();
    CHECK(standard < fast);
    CHECK(most < standard);
    CHECK(compressed(compression, CompressionLevel::fast, ids).size() == fast);
  }
}

TEST_CASE("a wrong length, a cut and a flipped bit never write past the buffer, and a wrong length is said") {
  const std::string text = text_like_bytes(500);
  for (const Compression compression : kAll) {
    auto small = compressed(compression, CompressionLevel::standard, text);
    for (const size_t wrong : {size_t{0}, size_t{499}, size_t{501}, size_t{5000}}) {
      std::string back(wrong, '?');
      const Status status = decompress(compression, small, std::as_writable_bytes(std::span(back)));
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code == ErrorCode::corruption);
    }
    std::string back(500, '?');
    for (size_t cut = 0; cut < small.size(); ++cut)
      CHECK_FALSE(
          decompress(compression, Bytes(small).first(cut), std::as_writable_bytes(std::span(back))).ok());
    for (size_t bit = 0; bit < small.size() * 8; ++bit) {
      small[bit / 8] ^= std::byte(1 << bit % 8);
      static_cast<void>(decompress(compression, small, std::as_writable_bytes(std::span(back))));
      small[bit / 8] ^= std::byte(1 << bit % 8);
    }
  }
}

TEST_CASE("a buffer that is too small is an error") {
  const std::string text = text_like_bytes(1000);
  for (const Compression compression : kAll) {
    std::vector<std::byte> out(10);
    CHECK_FALSE(compress(compression, CompressionLevel::fast, bytes_of(text), out).ok());
  }
}

TEST_CASE("every compression has a name that means it") {
  for (const Compression compression : kAll) CHECK(compression_named(name_of(compression)) == compression);
  CHECK_FALSE(compression_named("gzip").has_value());
}

}  // namespace
}  // namespace lmemo
