// WordPiece in the fast engine against the reference, on made-up vocabularies and nasty texts.
#include <doctest/doctest.h>

#include <iterator>
#include <string>
#include <vector>

#include "support/test_scale.h"
#include "tokenizer/both_engines.h"
#include "tokenizer/unicode/code_points.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using test::Engines, test::check_nasty;

// Stretches of nasty texts as they are after the normalizer, as starts of words and as what continues them.
Json wordpiece_model(std::mt19937& random, size_t token_count, const std::string& prefix) {
  Json vocab = {{"[UNK]", 0}};
  const auto add = [&](const std::string& token) { vocab.emplace(token, vocab.size()); };
  for (const char* token :
       {"a", "b", "e", "h", "1", "'", "!", "/", "中", "文", "字", "か", "ᄀ", "ᅡ", "\u302E"}) {
    add(token);
    add(prefix + token);
  }
  for (size_t i = 0; i < token_count; ++i) add((i % 2 == 0 ? "" : prefix) + test::nasty_text(random, 3));
  return {{"type", "WordPiece"},
          {"vocab", vocab},
          {"unk_token", "[UNK]"},
          {"continuing_subword_prefix", prefix},
          {"max_input_chars_per_word", 8}};
}

Json bert_normalizer(unsigned bits) {
  Json normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", (bits & 1) != 0},
                     {"handle_chinese_chars", (bits & 2) != 0},
                     {"lowercase", (bits & 4) != 0},
                     {"strip_accents", nullptr}};
  if (bits & 8) normalizer["strip_accents"] = (bits & 4) == 0;
  return normalizer;
}

Json bert_file(std::mt19937& random, unsigned normalizer_bits) {
  return {{"model", wordpiece_model(random, 300, "##")},
          {"normalizer", bert_normalizer(normalizer_bits)},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}}};
}

// Marks that strip_accents keeps, controls that are removed, and what they stand beside.
std::string text_of_marks(std::mt19937& random) {
  static constexpr char32_t kBits[] = {0x302E, 0x302F, 0x1D165, 0x1D16D, 0x1D15E, 0x1D15F, 0x1D172, 0x301,
                                       0x315,  0x345,  0x94D,   0x200D,  0xAD,    0x1,     0x85,    0x3000,
                                       0xFA0E, 0xF900, 0x2F800, 0xE9,    0x130,   0x4E2D,  0xAC00,  0xAC01,
                                       0x1100, 0x1161, U'a',    U'B',    U' ',    U'.'};
  std::u32string text;
  for (size_t count = 1 + random() % 8; count > 0; --count) text += kBits[random() % std::size(kBits)];
  return utf8_of(text);
}

}  // namespace

TEST_CASE("WordPiece gives the reference's ids, whatever its normalizer does") {
  std::mt19937 random(21);
  for (unsigned bits = 0; bits < 16; ++bits) {
    const Engines engines(bert_file(random, bits));
    check_nasty(engines, random, static_cast<size_t>(test::scaled(100)));
    for (int i = 0; i < test::scaled(200); ++i) engines.check(text_of_marks(random));
  }
}

TEST_CASE("every code point becomes what BertNormalizer makes of it") {
  std::mt19937 random(22);
  for (const unsigned bits : {7u, 3u, 12u, 0u}) {
    const Json file = bert_file(random, bits);
    const auto made = make_normalizer(file["normalizer"], "normalizer");
    REQUIRE(made.ok());
    auto loaded = load_file(file.dump());
    const auto plan = fast_plan_of(loaded->tree, loaded->parts);
    std::string scratch;
    for (char32_t first = 0; first < 0x110000; first += 16) {
      if (first >= 0xD800 && first < 0xE000) continue;
      std::u32string text;
      for (char32_t c = first; c < first + 16; ++c) text += {c, U'x'};
      const std::string utf8 = utf8_of(text);
      CAPTURE(first);
      REQUIRE(plan->normalizer->rewrite(utf8, scratch) == (*made)->normalize(utf8));
    }
  }
}

TEST_CASE("WordPiece with odd options gives the reference's ids") {
  std::mt19937 random(23);
  Json file = bert_file(random, 7);
  SUBCASE("no normalizer") { file["normalizer"] = nullptr; }
  SUBCASE("another normalizer") { file["normalizer"] = {{"type", "NFKC"}}; }
  SUBCASE("no prefix") { file["model"] = wordpiece_model(random, 300, ""); }
  SUBCASE("a prefix beyond ASCII") { file["model"] = wordpiece_model(random, 300, "é"); }
  SUBCASE("no room for characters") { file["model"]["max_input_chars_per_word"] = 0; }
  SUBCASE("no token for the unknown") { file["model"]["unk_token"] = "nothing of that name"; }
  SUBCASE("added tokens") {
    file["added_tokens"] = {{{"id", 0},
                             {"content", "<|"},
                             {"single_word", false},
                             {"lstrip", true},
                             {"rstrip", true},
                             {"normalized", false},
                             {"special", true}},
                            {{"id", 0},
                             {"content", "The"},
                             {"single_word", true},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", true},
                             {"special", false}}};
  }
  check_nasty(Engines(file), random, static_cast<size_t>(test::scaled(500)));
}

TEST_CASE("a long text for BERT that is cut between threads has the same ids") {
  std::mt19937 random(24);
  const Engines engines(bert_file(random, 7));
  test::check_long_text(engines, random);
}

}  // namespace lmemo::tokenizer
