#include "tokenizer/reference/pre_tokenizer.h"

#include "tokenizer/reference/normalizer.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

using namespace lmemo;
using namespace lmemo::tokenizer;
using nlohmann::json;

namespace {

using Texts = std::vector<std::string>;

Texts pieces(const json& part, const std::string& text, bool starts_text = true) {
  const auto made = make_pre_tokenizer(part, "pre_tokenizer");
  REQUIRE(made.ok());
  std::vector<Piece> all = {{text, starts_text}};
  (*made)->split(all);
  Texts texts;
  for (const Piece& piece : all) texts.push_back(piece.text);
  return texts;
}

json split_at(const std::string& text, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", {{"String", text}}}, {"behavior", behavior}, {"invert", invert}};
}

json metaspace(const std::string& scheme) {
  return {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", true}};
}

std::string refusal_of(const json& part) {
  const auto made = make_pre_tokenizer(part, "pre_tokenizer");
  return made.ok() ? "" : made.error().message;
}

}  // namespace

TEST_CASE("delimiters are dropped, kept apart, or join a neighbour") {
  const std::string text = "the-final--cut";
  CHECK(pieces(split_at("-", "Removed"), text) == Texts{"the", "final", "cut"});
  CHECK(pieces(split_at("-", "Isolated"), text) == Texts{"the", "-", "final", "-", "-", "cut"});
  CHECK(pieces(split_at("-", "MergedWithPrevious"), text) == Texts{"the-", "final-", "-", "cut"});
  CHECK(pieces(split_at("-", "MergedWithNext"), text) == Texts{"the", "-final", "-", "-cut"});
  CHECK(pieces(split_at("-", "Contiguous"), text) == Texts{"the", "-", "final", "--", "cut"});
  CHECK(pieces(split_at("-", "Removed", true), text) == Texts{"-", "-", "-"});
}

TEST_CASE("only the piece at the start of the input gets the prefix of 'first'") {
  CHECK(pieces(metaspace("first"), "a b") == Texts{"▁a", "▁b"});
  CHECK(pieces(metaspace("first"), "a b", false) == Texts{"a", "▁b"});
  const json both = {{"type", "Sequence"},
                     {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("first")}}};
  CHECK(pieces(both, "a b") == Texts{"▁a", "b"});
  CHECK(pieces(both, " a b") == Texts{"a", "b"});
  CHECK(pieces(metaspace("always"), "").empty());
}

TEST_CASE("what a normalizer drops at the front is not the start any more") {
  const json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  const auto made = make_normalizer(strip, "normalizer");
  REQUIRE(made.ok());
  CHECK((*made)->normalize(" a ") == "a");
  CHECK((*made)->drops_start(" a "));
  CHECK_FALSE((*made)->drops_start("a "));
}

TEST_CASE("an unknown part or option is refused with its place") {
  CHECK(refusal_of({{"type", "Magic"}}) ==
        "tokenizer.json, pre_tokenizer.type: pre-tokenizer \"Magic\" is not known");
  const json sequence = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Whitespace"}, {"speed", 11}}}}};
  CHECK(refusal_of(sequence) ==
        "tokenizer.json, pre_tokenizer.pretokenizers[0]: option \"speed\" is not known");
  const json regex = {
      {"type", "Split"}, {"pattern", {{"Regex", "a(?R)"}}}, {"behavior", "Isolated"}, {"invert", false}};
  CHECK(refusal_of(regex) ==
        "tokenizer.json, pre_tokenizer.pattern: regex: this kind of group is not supported, at character 1: "
        "'(?R)'");
  CHECK_FALSE(refusal_of({{"type", "Sequence"}, {"pretokenizers", {metaspace("always"), metaspace("first")}}})
                  .empty());
  CHECK_FALSE(refusal_of(json::array()).empty());
  const auto made = make_pre_tokenizer(json(), "pre_tokenizer");
  REQUIRE(made.ok());
  CHECK(*made == nullptr);
}
