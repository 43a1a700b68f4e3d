#include "tokenizer/reference/vocabulary.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/test_scale.h"

namespace lmemo::tokenizer {

TEST_CASE("every token has its id and every id its token, however many there are") {
  Vocabulary vocabulary;
  const auto count = static_cast<uint32_t>(test::scaled(50'000));
  const auto token = [](uint32_t i) { return std::string(i % 7, 'x') + std::to_string(i); };
  for (uint32_t i = 0; i < count; ++i) REQUIRE(vocabulary.add(token(i), i * 3 + 1) == Vocabulary::Added::yes);
  CHECK(vocabulary.size() == count);
  CHECK(vocabulary.id_limit() == (count - 1) * 3 + 2);
  for (uint32_t i = 0; i < count; ++i) {
    REQUIRE(vocabulary.id_of(token(i)) == i * 3 + 1);
    REQUIRE(vocabulary.token_of(i * 3 + 1) == token(i));
    REQUIRE_FALSE(vocabulary.token_of(i * 3));
  }
  CHECK_FALSE(vocabulary.id_of("not there"));
  uint32_t next = 0;
  vocabulary.for_each([&](std::string_view found, uint32_t id) {
    REQUIRE(found == token(next));
    REQUIRE(id == next++ * 3 + 1);
  });
  CHECK(next == count);
}

TEST_CASE("neither a token nor an id is added twice") {
  Vocabulary vocabulary;
  CHECK_FALSE(vocabulary.id_of(""));
  CHECK_FALSE(vocabulary.token_of(0));
  CHECK(vocabulary.id_limit() == 0);
  CHECK(vocabulary.add("a", 5) == Vocabulary::Added::yes);
  CHECK(vocabulary.add("a", 6) == Vocabulary::Added::token_is_there);
  CHECK(vocabulary.add("b", 5) == Vocabulary::Added::id_is_there);
  CHECK(vocabulary.add("", 4'294'967'295) == Vocabulary::Added::yes);
  CHECK(vocabulary.add("c", 4'294'967'295) == Vocabulary::Added::id_is_there);
  CHECK(vocabulary.token_of(4'294'967'295) == "");
  CHECK(vocabulary.size() == 2);
}

TEST_CASE("an id that was far away when it came is found when it is no longer") {
  Vocabulary vocabulary;
  CHECK(vocabulary.add("far", 70'000) == Vocabulary::Added::yes);
  for (uint32_t i = 0; i < 9000; ++i)
    REQUIRE(vocabulary.add(std::to_string(i), 69'000 + i) ==
            (i == 1000 ? Vocabulary::Added::id_is_there : Vocabulary::Added::yes));
  CHECK(vocabulary.token_of(70'000) == "far");
  CHECK(vocabulary.token_of(70'001) == "1001");
}

}  // namespace lmemo::tokenizer
