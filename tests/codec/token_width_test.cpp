#include "codec/token_width.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace lmemo {
namespace {

TEST_CASE("every id comes back at every width and length, and nothing else is written") {
  std::mt19937 random(7);
  for (const TokenWidth width : {TokenWidth::two, TokenWidth::three, TokenWidth::four}) {
    const uint32_t mask = width == TokenWidth::two     ? 0xFFFF
                          : width == TokenWidth::three ? 0xFFFFFF
                                                       : 0xFFFFFFFF;
    for (size_t count = 0; count < 70; ++count) {
      std::vector<uint32_t> ids(count);
      for (uint32_t& id : ids) id = static_cast<uint32_t>(random()) & mask;
      if (count > 0) ids.back() = mask;
      std::string packed(count * bytes_per_token(width) + 9, '\x5A');
      pack_tokens(ids, width, packed.data());
      CHECK(packed.ends_with(std::string(9, '\x5A')));
      std::vector<uint32_t> back(count + 3, 0xA5A5A5A5);
      unpack_tokens(bytes_of(packed).first(count * bytes_per_token(width)), width, back.data());
      CHECK(std::vector(back.begin() + static_cast<std::ptrdiff_t>(count), back.end()) ==
            std::vector<uint32_t>(3, 0xA5A5A5A5));
      back.resize(count);
      CHECK(back == ids);
    }
  }
}

TEST_CASE("the bytes are little-endian") {
  const std::vector<uint32_t> ids = {0x010203};
  std::string packed(3, '\0');
  pack_tokens(ids, TokenWidth::three, packed.data());
  CHECK(packed == "\x03\x02\x01");
}

TEST_CASE("the narrowest width that holds a vocabulary") {
  CHECK(token_width_for(50257) == TokenWidth::two);
  CHECK(token_width_for(65536) == TokenWidth::two);
  CHECK(token_width_for(65537) == TokenWidth::three);
  CHECK(token_width_for(uint64_t{1} << 24) == TokenWidth::three);
  CHECK(token_width_for((uint64_t{1} << 24) + 1) == TokenWidth::four);
  const std::vector<uint32_t> ids = {1, 65535}, more = {65536}, most = {1u << 24};
  CHECK(narrowest_width(ids) == TokenWidth::two);
  CHECK(narrowest_width(more) == TokenWidth::three);
  CHECK(narrowest_width(most) == TokenWidth::four);
  CHECK(narrowest_width({}) == TokenWidth::two);
}

}  // namespace
}  // namespace lmemo
