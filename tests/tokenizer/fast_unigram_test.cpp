// Unigram in the fast engine against the reference, on made-up vocabularies and nasty texts.
#include <doctest/doctest.h>

#include <iterator>
#include <string>
#include <vector>

#include "support/test_scale.h"
#include "tokenizer/both_engines.h"
#include "tokenizer/fast/precompiled_text.h"
#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/unicode/code_points.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using test::Engines, test::check_nasty;

// Nasty texts with marks, and some without. Many scores are equal, so that ties are met.
Json unigram_model(std::mt19937& random, size_t token_count, const std::string& mark) {
  Json vocab = Json::array();
  const auto add = [&](const std::string& token, double score) {
    vocab.push_back(Json::array({token, score}));
  };
  add("<unk>", 0);
  add(mark, -2);
  add("a", -1);
  add("e" + mark, -1.5);
  for (size_t i = 0; i < token_count; ++i) {
    std::string token = i % 2 == 0 ? mark : "";
    for (const char byte : test::nasty_text(random, 3))
      token += byte == ' ' && i % 3 != 0 ? mark : std::string(1, byte);
    add(token, -0.5 * static_cast<double>(random() % 12));
  }
  return {{"type", "Unigram"}, {"vocab", vocab}, {"unk_id", 0}, {"byte_fallback", false}};
}

Json metaspace(const std::string& mark, const char* scheme) {
  return {{"type", "Metaspace"}, {"replacement", mark}, {"prepend_scheme", scheme}, {"split", true}};
}

Json behind_white_space(const Json& metaspace) {
  return {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}};
}

// A character map of keys and replacements that never branches at one byte: each key has its own first byte.
std::string character_map(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::vector<uint32_t> units(256 * 8);
  std::string texts;
  units[0] = 256u << 10;  // The root's children lie from 256 on.
  size_t next_block = 2;
  for (const auto& [key, text] : entries) {
    size_t base = 256;
    for (size_t i = 0; i < key.size(); ++i) {
      const auto byte = static_cast<unsigned char>(key[i]);
      const size_t node = base ^ byte;
      const bool is_last = i + 1 == key.size();
      const size_t below = 256 * next_block++;
      units.resize(std::max(units.size(), 256 * next_block));
      units[node] = static_cast<uint32_t>((node ^ below) << 10) | (is_last ? 0x100u : 0u) | byte;
      base = below;
      if (is_last) units[below] = 0x80000000u | static_cast<uint32_t>(texts.size());
    }
    texts += text + '\0';
  }
  std::string bytes;
  const auto add_number = [&](uint32_t number) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> 8 * i);
  };
  add_number(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) add_number(unit);
  bytes += texts;

  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (bytes.size() % 3 != 0) bytes += '\0';
  std::string encoded;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) {
      return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + at]));
    };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) encoded += kDigits[three >> shift & 63];
  }
  return encoded;
}

Json precompiled() {
  return {{"type", "Precompiled"},
          {"precompiled_charsmap", character_map({{"\n", " "},
                                                  {"\r", " "},
                                                  {"\t", ""},
                                                  {"B", "bb"},
                                                  {"e\u0301", "E"},
                                                  {"\u00A0", " "},
                                                  {"\u3000", "  "},
                                                  {"文", "wen"},
                                                  {"가", "ga"},
                                                  {"😀", ":)"},
                                                  {"\u0301", "'"}})}};
}

// What joins clusters, and what does not.
std::string text_of_clusters(std::mt19937& random) {
  static constexpr char32_t kBits[] = {U'a',   U'e',   U'B',   U'.',    U' ',    U'\r',   U'\n', U'\t',
                                       0x1,    0x301,  0x200D, 0x1F468, 0x1F600, 0x1F3FD, 0x600, 0x1100,
                                       0x1161, 0x11A8, 0xAC00, 0xAC01,  0x2581,  0xE9,    0xA0,  0x3000,
                                       0x6587, 0x4E2D, 0x903,  0x1F1E6, 0xE33,   0x85,    0xAD};
  std::u32string text;
  for (size_t count = 1 + random() % 10; count > 0; --count) text += kBits[random() % std::size(kBits)];
  return utf8_of(text);
}

}  // namespace

TEST_CASE("Unigram gives the reference's ids") {
  std::mt19937 random(31);
  const std::string marks[] = {"▁", "_", "é"};
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(24)); ++round) {
    const std::string& mark = marks[round % 3];
    const Json words = metaspace(mark, round % 4 == 3 ? "never" : round % 4 == 1 ? "first" : "always");
    Json file = {{"model", unigram_model(random, 20 + round * 20, mark)},
                 {"pre_tokenizer", round % 2 == 0 ? behind_white_space(words) : words}};
    if (round % 3 == 1) file["normalizer"] = precompiled();
    if (round % 3 == 2) file["normalizer"] = {{"type", "NFKC"}};
    if (round % 5 == 4)
      file["added_tokens"] = {{{"id", 0},
                               {"content", "the"},
                               {"single_word", false},
                               {"lstrip", false},
                               {"rstrip", true},
                               {"normalized", true},
                               {"special", false}}};
    const Engines engines(file);
    check_nasty(engines, random, 300);
    for (int i = 0; i < 200; ++i) engines.check(text_of_clusters(random));
  }
}

TEST_CASE("Unigram falls back to bytes as the reference does") {
  std::mt19937 random(32);
  for (const size_t byte_count : {256u, 128u}) {
    Json model = unigram_model(random, 100, "▁");
    model["byte_fallback"] = true;
    for (size_t byte = 0; byte < byte_count; ++byte)
      model["vocab"].push_back(Json::array({byte_token(static_cast<unsigned char>(byte)), 0.0}));
    check_nasty(Engines({{"model", model}, {"pre_tokenizer", metaspace("▁", "always")}}), random, 500);
  }
}

TEST_CASE("Unigram that only the reference can do is left to it") {
  std::mt19937 random(33);
  Json file = {{"model", unigram_model(random, 20, "▁")}, {"pre_tokenizer", metaspace("▁", "always")}};
  SUBCASE("a first word that has to be known") {
    file["pre_tokenizer"] = behind_white_space(metaspace("▁", "first"));
  }
  SUBCASE("words that are not cut") { file["pre_tokenizer"]["split"] = false; }
  SUBCASE("words without a mark between them") {
    file["pre_tokenizer"] = behind_white_space(metaspace("▁", "never"));
  }
  SUBCASE("nothing for the unknown") { file["model"]["unk_id"] = nullptr; }
  SUBCASE("marks that may become bytes") {
    file["model"]["byte_fallback"] = true;
    file["model"]["vocab"][1][0] = "no mark";
  }
  const auto made = Tokenizer::from_json(file.dump());
  REQUIRE(made.ok());
  CHECK((*made)->engine() == "reference");
}

TEST_CASE("every code point becomes what Precompiled makes of it") {
  const auto reference = make_normalizer(precompiled(), "normalizer");
  REQUIRE(reference.ok());
  const auto fast = make_precompiled_text(dynamic_cast<const Precompiled&>(**reference));
  std::string scratch;
  CHECK(fast->rewrite("Be\u0301\r\n\u3000", scratch) == "bbE   ");
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = utf8_of(std::u32string{c, U'a', c, c, U'\n', c, U'B'});
    CAPTURE(static_cast<uint32_t>(c));
    REQUIRE(fast->rewrite(text, scratch) == (*reference)->normalize(text));
  }
}

TEST_CASE("a long text for Unigram that is cut between threads has the same ids") {
  std::mt19937 random(34);
  const Engines engines({{"model", unigram_model(random, 200, "▁")},
                         {"normalizer", precompiled()},
                         {"pre_tokenizer", behind_white_space(metaspace("▁", "always"))}});
  test::check_long_text(engines, random);
}

}  // namespace lmemo::tokenizer
