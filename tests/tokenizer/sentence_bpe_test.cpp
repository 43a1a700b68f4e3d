// SentencePiece-style BPE in the fast engine against the reference.
#include "tokenizer/fast/sentence_bpe.h"

#include "support/test_scale.h"
#include "tokenizer/both_engines.h"
#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using test::Engines, test::check_nasty;

std::string marked(std::string text) {
  for (size_t at = 0; (at = text.find(' ', at)) != std::string::npos;) text.replace(at, 1, kBlankMark);
  return text;
}

// Bytes, some of the characters of nasty texts, and merges of neighbours.
Json sentence_model(std::mt19937& random, size_t merge_count) {
  Json vocab = Json::object();
  const auto add = [&](const std::string& token) {
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  };
  add("<unk>");
  for (unsigned byte = 0; byte < 256; ++byte) add(byte_token(static_cast<unsigned char>(byte)));
  add(std::string(kBlankMark));  // As every real file has it.
  Json merges = Json::array();
  for (size_t i = 0; i < merge_count; ++i) {
    const std::string text = marked(test::nasty_text(random, 2));
    std::vector<size_t> borders;
    for (size_t at = char_bytes(text, 0); at < text.size(); at += char_bytes(text, at)) borders.push_back(at);
    for (size_t at = 0; at < text.size(); at += char_bytes(text, at))
      add(text.substr(at, char_bytes(text, at)));
    if (borders.empty()) continue;
    const size_t cut = borders[random() % borders.size()];
    add(text.substr(0, cut));
    add(text.substr(cut));
    add(text);
    merges.push_back({text.substr(0, cut), text.substr(cut)});
  }
  return {{"type", "BPE"},        {"vocab", vocab},        {"merges", merges},
          {"unk_token", "<unk>"}, {"byte_fallback", true}, {"fuse_unk", true}};
}

Json blanks_to_marks() {
  return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kBlankMark}};
}

}  // namespace

TEST_CASE("SentencePiece-style BPE gives the reference's ids") {
  std::mt19937 random(21);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(10)); ++round) {
    Json file = {{"model", sentence_model(random, 10 + round * 40)}, {"normalizer", blanks_to_marks()}};
    if (round % 2 == 1)
      file["normalizer"] = {
          {"type", "Sequence"},
          {"normalizers", {{{"type", "Prepend"}, {"prepend", kBlankMark}}, blanks_to_marks()}}};
    if (round % 3 == 1)
      file["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"String", " "}}},
                               {"behavior", "MergedWithPrevious"},
                               {"invert", false}};
    if (round % 3 == 2)
      file["added_tokens"] = {{{"id", 0},
                               {"content", "<|"},
                               {"single_word", false},
                               {"lstrip", round % 2 == 1},
                               {"rstrip", round % 2 == 1},
                               {"normalized", false},
                               {"special", true}}};
    const Engines engines(file);
    check_nasty(engines, random, 200);
    engines.check("\xE2\x96\x81 a\xE2\x96\x81the \xE2\x96\x81");
    engines.check("");
  }
}

TEST_CASE("marks by Metaspace give the reference's ids, wherever a stretch begins") {
  std::mt19937 random(25);
  const auto added = [](const char* content, const char* flag) {
    Json token = {{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
                  {"rstrip", false}, {"normalized", false}, {"special", true}};
    token[flag] = true;
    return token;
  };
  const std::vector<Json> normalizers = {
      nullptr, nullptr, {{"type", "NFC"}}, {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}};
  for (const char* scheme : {"first", "always", "never"}) {
    for (const bool splits : {false, true}) {
      for (size_t round = 0; round < normalizers.size(); ++round) {
        Json file = {{"model", sentence_model(random, 20 + round * 60)},
                     {"normalizer", normalizers[round]},
                     {"pre_tokenizer",
                      {{"type", "Metaspace"},
                       {"replacement", kBlankMark},
                       {"prepend_scheme", scheme},
                       {"split", splits}}}};
        if (round > 0)
          file["added_tokens"] = {added("<|", "special"),     added("a", "single_word"),
                                  added("the", "normalized"), added("_", "lstrip"),
                                  added(",", "rstrip"),       added("\n\n", "special")};
        CAPTURE(file["pre_tokenizer"].dump());
        CAPTURE(round);
        const Engines engines(file);
        check_nasty(engines, random, static_cast<size_t>(test::scaled(60)));
        for (const char* text :
             {"",     " ",    "  ",      "▁",        "▁ a▁the ▁", " <|",        "<|",
              "<|<|", "<| ",  "<|▁b<|c", "b<| b<|b", "the",       "the the",    " the\u00E9",
              "a a",  "_ _b", " _",      ", b",      ",",         " \n\n \n\nb"})
          engines.check(text);
      }
    }
  }
}

TEST_CASE("a long text is cut for threads where no token reaches, and gets one blank at its front") {
  std::mt19937 random(23);
  for (size_t round = 0; round < 4; ++round) {
    Json file = {{"model", sentence_model(random, 100)}, {"normalizer", blanks_to_marks()}};
    if (round % 2 == 1)
      file["normalizer"] = {
          {"type", "Sequence"},
          {"normalizers", {{{"type", "Prepend"}, {"prepend", kBlankMark}}, blanks_to_marks()}}};
    const auto added = [](const char* content) -> Json {
      return {{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
              {"rstrip", false}, {"normalized", false}, {"special", true}};
    };
    if (round >= 2) file["added_tokens"] = {added("<|"), added("\n"), added("\n\n"), added("y")};
    test::check_long_text(Engines(file), random);
    file["normalizer"] = nullptr;
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", kBlankMark},
                             {"prepend_scheme", round % 2 == 1 ? "always" : "first"},
                             {"split", round == 1}};
    test::check_long_text(Engines(file), random);
  }
}

TEST_CASE("a long text is not cut where a token reaches once the text is normalized") {
  std::mt19937 random(26);
  Json model = sentence_model(random, 100);
  for (const char* token : {"\n", "b", "\nb"})
    if (!model["vocab"].contains(token)) model["vocab"][token] = model["vocab"].size();
  model["merges"].push_back({"\n", "b"});
  const Json metaspace = {
      {"type", "Metaspace"}, {"replacement", kBlankMark}, {"prepend_scheme", "first"}, {"split", false}};
  test::check_long_text(
      Engines({{"model", model}, {"normalizer", {{"type", "Lowercase"}}}, {"pre_tokenizer", metaspace}}),
      random);
}

TEST_CASE("BPE of words that are marked and cut gives the reference's ids") {
  std::mt19937 random(23);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(8)); ++round) {
    Json file = {{"model", sentence_model(random, 10 + round * 40)},
                 {"pre_tokenizer",
                  {{"type", "Metaspace"},
                   {"replacement", kBlankMark},
                   {"prepend_scheme", "always"},
                   {"split", true}}}};
    file["model"]["byte_fallback"] = false;
    file["model"]["fuse_unk"] = round % 4 < 2;
    if (round % 3 == 0) file["model"]["unk_token"] = nullptr;
    if (round % 3 == 1) file["model"]["end_of_word_suffix"] = "</w>";
    if (round % 4 == 2) file["pre_tokenizer"]["prepend_scheme"] = "first";
    if (round % 2 == 1)
      file["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", {{{"type", "WhitespaceSplit"}}, file["pre_tokenizer"]}}};
    const Engines engines(file);
    check_nasty(engines, random, 300);
    if (round == 1) test::check_long_text(engines, random);
  }
}

TEST_CASE("what the quick way cannot do is left to the reference") {
  std::mt19937 random(22);
  Json file = {{"model", sentence_model(random, 50)}, {"normalizer", blanks_to_marks()}};
  file["model"]["vocab"]["a b"] = 100000;
  CHECK((*Tokenizer::from_json(file.dump()))->engine() == "reference");
  file["model"]["vocab"].erase("a b");
  CHECK((*Tokenizer::from_json(file.dump()))->engine() == "fast");
  file["model"]["vocab"].erase("<0x41>");
  CHECK((*Tokenizer::from_json(file.dump()))->engine() == "reference");
}

TEST_CASE("without a token for the mark, a blank is the mark's three bytes") {
  Json vocab = {{"<unk>", 256}, {"a", 257}, {"b", 258}, {"ab", 259}};
  for (unsigned byte = 0; byte < 256; ++byte) vocab[byte_token(static_cast<unsigned char>(byte))] = byte;
  const Json model = {{"type", "BPE"},        {"vocab", vocab},        {"merges", {"a b"}},
                      {"unk_token", "<unk>"}, {"byte_fallback", true}, {"fuse_unk", true}};
  const Json metaspace = {
      {"type", "Metaspace"}, {"replacement", kBlankMark}, {"prepend_scheme", "never"}, {"split", true}};
  for (const Json& file : {Json{{"model", model}, {"normalizer", blanks_to_marks()}},
                           Json{{"model", model}, {"pre_tokenizer", metaspace}}}) {
    const auto tokenizer = *Tokenizer::from_json(file.dump());
    CHECK(tokenizer->engine() == "reference");
    CHECK(*tokenizer->encode("ab b") == std::vector<uint32_t>{259, 0xE2, 0x96, 0x81, 258});
  }
}

}  // namespace lmemo::tokenizer
