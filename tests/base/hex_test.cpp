#include "base/hex.h"

#include <doctest/doctest.h>

namespace lmemo {
namespace {

TEST_CASE("bytes as hexadecimal and back") {
  const std::string bytes("\x00\x7f\x80\xff", 4);
  CHECK(to_hex(bytes_of(bytes)) == "007f80ff");
  CHECK(from_hex("007f80ff") == bytes);
  CHECK(from_hex("") == "");
  CHECK(to_hex(uint64_t{0xabc}) == "0000000000000abc");
}

TEST_CASE("what is no hexadecimal is refused") {
  for (const char* text : {"0", "0g", "g0", " 00", "0x00", "00 "}) CHECK_FALSE(from_hex(text).has_value());
}

TEST_CASE("a digest is 64 digits, no more and no less") {
  const std::string hex(64, 'a');
  REQUIRE(Digest::from_hex(hex).has_value());
  CHECK(Digest::from_hex(hex)->hex() == hex);
  CHECK_FALSE(Digest::from_hex(hex.substr(1)).has_value());
  CHECK_FALSE(Digest::from_hex(hex + "aa").has_value());
  CHECK_FALSE(Digest::from_hex(hex.substr(1) + "z").has_value());
}

}  // namespace
}  // namespace lmemo
