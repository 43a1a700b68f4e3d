#include "store/fields_block.h"

#include <doctest/doctest.h>

namespace lmemo {
namespace {

std::string encoding_of(std::vector<Field> fields) {
  return std::string(text_of(Key::of("tokens", std::move(fields))->encoding()));
}

const std::vector<std::string>& encodings() {
  static const std::vector<std::string> all = {encoding_of({{"model", "m"}, {"n", 1}}), encoding_of({}),
                                               encoding_of({{"model", "m"}, {"n", 2}})};
  return all;
}

std::string block() {
  return build_fields_block(3, [](size_t ordinal) { return std::string_view(encodings()[ordinal]); });
}

TEST_CASE("the fields of every entry come back, each distinct one stored once") {
  const std::string built = block();
  const auto parsed = FieldsBlock::parse(bytes_of(built), 3);
  REQUIRE(parsed.has_value());
  for (size_t i = 0; i < 3; ++i) CHECK(parsed->encoding_of(i, "tokens") == encodings()[i]);
  const std::string model = encode_field({"model", "m"});
  CHECK(built.find(model) == built.rfind(model));
  const auto number = parsed->number_of(model);
  REQUIRE(number.has_value());
  CHECK(parsed->has(0, *number));
  CHECK_FALSE(parsed->has(1, *number));
  CHECK(parsed->has(2, *number));
  CHECK_FALSE(parsed->number_of(encode_field({"model", "other"})).has_value());
}

TEST_CASE("a block cut anywhere before its padding is refused, or says the same") {
  const std::string built = block();
  for (size_t cut = 0; cut < built.size(); ++cut) {
    const auto parsed = FieldsBlock::parse(bytes_of(built).first(cut), 3);
    if (parsed)
      for (size_t i = 0; i < 3; ++i) CHECK(parsed->encoding_of(i, "tokens") == encodings()[i]);
  }
  CHECK_FALSE(FieldsBlock::parse(bytes_of(built), 4).has_value());
  CHECK_FALSE(FieldsBlock::parse(bytes_of(built), uint64_t{1} << 40).has_value());
}

TEST_CASE("no changed byte leads outside") {
  const std::string built = block();
  for (size_t position = 0; position < built.size(); ++position)
    for (const int mask : {1, 0x80, 0xff}) {
      std::string changed = built;
      changed[position] = static_cast<char>(changed[position] ^ mask);
      if (const auto parsed = FieldsBlock::parse(bytes_of(changed), 3))
        for (size_t i = 0; i < 3; ++i) CHECK(parsed->encoding_of(i, "tokens").size() < 1000);
    }
}

TEST_CASE("an encoding splits into its fields, and a cut one does not") {
  std::vector<std::string_view> fields;
  REQUIRE(split_encoding(encodings()[0], fields));
  REQUIRE(fields.size() == 2);
  CHECK(fields[0] == encode_field({"model", "m"}));
  CHECK(fields[1] == encode_field({"n", 1}));
  for (size_t cut = 0; cut < encodings()[0].size(); ++cut)
    CHECK_FALSE(split_encoding(std::string_view(encodings()[0]).substr(0, cut), fields));
  CHECK_FALSE(split_encoding(encodings()[0] + "x", fields));
}

}  // namespace
}  // namespace lmemo
