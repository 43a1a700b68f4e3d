#include "codec/checksum.h"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>

#include "codec/checksum_dispatch.h"

namespace lmemo {
namespace {

std::string random_bytes(size_t count) {
  std::mt19937_64 random(count);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST_CASE("XXH3 of known vectors") {
  // From xxHash's own sanity tests and `xxhsum -H3`.
  CHECK(checksum({}) == 0x2d06800538d394c2);
  CHECK(checksum(bytes_of("a")) == 0xe6c632b61e964e1f);
  CHECK(checksum(bytes_of("abc")) == 0x78af5f94892f3950);
}

TEST_CASE("every kernel agrees, for every length and seed, at every alignment") {
  const std::string bytes = random_bytes(5000);
  for (size_t length = 0; length < 5000; length += length < 300 ? 1 : 97)
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      const Bytes input =
          bytes_of(bytes).subspan(length % 9 < bytes.size() - length ? length % 9 : 0, length);
      const uint64_t expected = kPortableChecksum.one_part(input, seed);
      CHECK(checksum(input, seed) == expected);
#if defined(__x86_64__)
      if (__builtin_cpu_supports("avx2")) {
        CHECK(kAvx2Checksum.one_part(input, seed) == expected);
        const std::array<Bytes, 2> halves = {input.first(length / 2), input.subspan(length / 2)};
        CHECK(kAvx2Checksum.many_parts(halves.data(), 2, seed) == expected);
      }
#endif
    }
}

TEST_CASE("a checksum of parts is that of the whole") {
  const std::string bytes = random_bytes(3000);
  const Bytes whole = bytes_of(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{240}, size_t{1024}, size_t{2999}, size_t{3000}})
    CHECK(checksum({whole.first(cut), Bytes(), whole.subspan(cut)}, 7) == checksum(whole, 7));
}

TEST_CASE("a flipped bit anywhere changes the checksum") {
  std::string bytes = random_bytes(300);
  const uint64_t before = checksum(bytes_of(bytes), 3);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    CHECK(checksum(bytes_of(bytes), 3) != before);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
}

}  // namespace
}  // namespace lmemo
