#include "faces/sections/section_value.h"

#include <doctest/doctest.h>

#include <vector>

#include "faces/sections/tree_memory.h"

namespace lmemo {
namespace {

TEST_CASE("a section comes back, as wide as its vocabulary asks, wider where an id does") {
  const std::vector<uint32_t> ids = {1, 50256, 0}, large = {70000};
  for (const TokenWidth width : {TokenWidth::two, TokenWidth::three, TokenWidth::four}) {
    const std::string value = encode_section(ids, width);
    CHECK(value.size() == 8 + 3 * bytes_per_token(width));
    const auto section = decode_section(bytes_of(value));
    REQUIRE(section);
    CHECK(section->width == width);
    std::vector<uint32_t> back(section->count());
    unpack_tokens(section->ids, section->width, back.data());
    CHECK(back == ids);
  }
  CHECK(decode_section(bytes_of(encode_section(large, TokenWidth::two)))->width == TokenWidth::three);
  CHECK(decode_section(bytes_of(encode_section({}, TokenWidth::two)))->count() == 0);
}

TEST_CASE("a section cut anywhere, or of another length than it says, is none") {
  const std::vector<uint32_t> ids = {1, 2, 3};
  const std::string value = encode_section(ids, TokenWidth::two);
  for (size_t cut = 0; cut < value.size(); ++cut) CHECK_FALSE(decode_section(bytes_of(value).first(cut)));
  CHECK_FALSE(decode_section(bytes_of(value + "x")));
  for (size_t at = 0; at < 8; ++at) {
    std::string changed = value;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    CHECK_FALSE(decode_section(bytes_of(changed)));
  }
}

TEST_CASE("a label comes back, and a broken one does not") {
  TreeLabel label{"/a b:c", "name", "00ff", "", "text 5:</s>"};
  const std::string text = label.text();
  const auto back = TreeLabel::parse(text);
  REQUIRE(back);
  CHECK(back->root == label.root);
  CHECK(back->eos == label.eos);
  for (size_t cut = 0; cut < text.size(); ++cut) CHECK_FALSE(TreeLabel::parse(text.substr(0, cut)));
  CHECK_FALSE(TreeLabel::parse(text + "x"));
  CHECK_FALSE(TreeLabel::parse("99999999999:x"));
}

}  // namespace
}  // namespace lmemo
