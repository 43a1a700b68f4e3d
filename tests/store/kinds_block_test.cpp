#include "store/kinds_block.h"

#include <doctest/doctest.h>

namespace lmemo {
namespace {

TEST_CASE("kinds come back as they were, padded to a multiple of 8") {
  for (const std::vector<std::string>& kinds :
       {std::vector<std::string>{}, {"tokens"}, {"a", std::string(64, 'k'), "lmemo.access"}}) {
    const std::string block = build_kinds_block(kinds);
    CHECK(block.size() % 8 == 0);
    CHECK(parse_kinds_block(bytes_of(block)) == kinds);
  }
}

TEST_CASE("a block that promises more names than it has, or names of no length, is refused") {
  using namespace std::string_literals;
  for (const std::string& block : {""s, "\x01"s, "\x01\x00"s, "\x01\x00\x00"s, "\x01\x00\x05toke"s,
                                   "\xff\xff\x01k"s, "\x01\x00\x41"s + std::string(65, 'k')})
    CHECK_FALSE(parse_kinds_block(bytes_of(block)).has_value());
}

TEST_CASE("a kind has one number, however often it is asked for") {
  std::vector<std::string> kinds;
  CHECK(number_of_kind(kinds, "a") == 0);
  CHECK(number_of_kind(kinds, "b") == 1);
  CHECK(number_of_kind(kinds, "a") == 0);
  CHECK(kinds.size() == 2);
}

}  // namespace
}  // namespace lmemo
