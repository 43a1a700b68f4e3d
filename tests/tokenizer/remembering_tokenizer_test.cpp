// Pieces that are remembered where the reference does all other steps.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lmemo/tokenizer.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"
#include "tokenizer/nasty_texts.h"
#include "tokenizer/reference/loader.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

// Some words and characters of nasty texts, with or without something for the others.
Json model(std::mt19937& random, const std::string& type, bool has_unknown) {
  Json vocab = Json::object();
  const auto add = [&](const std::string& token) {
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  };
  if (has_unknown) add("[UNK]");
  for (size_t i = 0; i < 150; ++i) {
    const std::string text = test::nasty_text(random, 1 + i % 3);
    add(text);
    if (type == "WordPiece") add("##" + text);
    if (type == "BPE") add(text.substr(0, char_bytes(text, 0)));
  }
  Json made = {{"type", type}, {"vocab", vocab}};
  if (type == "BPE") made["merges"] = Json::array();
  if (type == "BPE" && has_unknown) made["unk_token"] = "[UNK]";
  if (type != "BPE") made["unk_token"] = "[UNK]";
  if (type == "WordPiece")
    made.update({{"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", 12}});
  return made;
}

void check_same(const Tokenizer& reference, const Tokenizer& remembering, const std::string& text) {
  CAPTURE(text);
  const auto expected = reference.encode(text);
  for (const int time : {1, 2}) {  // The second time it remembers.
    CAPTURE(time);
    const auto found = remembering.encode(text);
    REQUIRE(found.ok() == expected.ok());
    if (expected.ok())
      REQUIRE(*found == *expected);
    else
      CHECK(found.error().message == expected.error().message);
  }
}

const Json kWhitespace = {{"type", "Whitespace"}};

}  // namespace

TEST_CASE("what is remembered is what the reference makes") {
  std::mt19937 random(41);
  for (const char* type : {"BPE", "WordPiece", "WordLevel"})
    for (const bool has_unknown : {true, false})
      for (const Json& pre_tokenizer : {kWhitespace, Json({{"type", "UnicodeScripts"}}), Json(nullptr)}) {
        const Json file = {{"model", model(random, type, has_unknown)}, {"pre_tokenizer", pre_tokenizer}};
        const auto reference = make_reference(file.dump());
        const auto remembering = Tokenizer::from_json(file.dump());
        REQUIRE(reference.ok() == remembering.ok());
        if (!reference.ok()) continue;
        REQUIRE((*remembering)->engine() == "reference");
        for (size_t i = 0; i < static_cast<size_t>(test::scaled(200)); ++i)
          check_same(**reference, **remembering, test::nasty_text(random, i % 20 == 0 ? 200 : 10));
      }
}

TEST_CASE("remembered pieces are saved, and loaded by the same tokenizer only") {
  std::mt19937 random(42);
  const test::TempDirectory directory;
  const auto path = directory.path() / "pieces";
  const Json file = {{"model", model(random, "WordPiece", true)}, {"pre_tokenizer", kWhitespace}};
  const auto first = Tokenizer::from_json(file.dump());
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.push_back(test::nasty_text(random, 30));
  for (const std::string& text : texts) REQUIRE((*first)->encode(text).ok());
  REQUIRE((*first)->save_pieces(path).ok());

  const auto second = Tokenizer::from_json(file.dump());
  const auto loaded = (*second)->load_pieces(path);
  REQUIRE(loaded.ok());
  CHECK(*loaded > 50);
  for (const std::string& text : texts) CHECK(*(*second)->encode(text) == *(*first)->encode(text));

  Json other = file;
  other["model"]["max_input_chars_per_word"] = 13;
  const auto third = Tokenizer::from_json(other.dump());
  REQUIRE(third.ok());
  CHECK_FALSE((*third)->load_pieces(path).ok());
}

}  // namespace lmemo::tokenizer
