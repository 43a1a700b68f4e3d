// The fast engine against the reference, on made-up vocabularies and nasty texts.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lmemo/tokenizer.h"
#include "support/test_scale.h"
#include "tokenizer/both_engines.h"
#include "tokenizer/reference/byte_characters.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using test::Engines, test::check_nasty;

// All bytes, and merges of bytes that stand side by side in nasty texts.
Json byte_level_model(std::mt19937& random, size_t merge_count, bool ignore_merges) {
  std::vector<std::string> tokens;
  Json vocab = Json::object();
  const auto add = [&](const std::string& token) {
    if (vocab.contains(token)) return;
    vocab[token] = tokens.size();
    tokens.push_back(token);
  };
  for (unsigned byte = 0; byte < 256; ++byte)
    add(bytes_as_characters(std::string(1, static_cast<char>(byte))));
  Json merges = Json::array();
  for (size_t i = 0; i < merge_count; ++i) {
    const std::string text = test::nasty_text(random, 2);
    if (text.size() < 2) continue;
    // Two tokens that make up a stretch of it, cut anywhere: also inside a character.
    const size_t cut = 1 + random() % (text.size() - 1);
    const std::string left = bytes_as_characters(text.substr(0, cut));
    const std::string right = bytes_as_characters(text.substr(cut));
    add(left);
    add(right);
    add(left + right);
    merges.push_back(left + " " + right);
    if (cut >= 2) {
      const std::string first = bytes_as_characters(text.substr(0, 1)),
                        rest = bytes_as_characters(text.substr(1, cut - 1));
      add(first);
      add(rest);
      merges.push_back(first + " " + rest);
    }
  }
  return {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}, {"ignore_merges", ignore_merges}};
}

Json split_then_bytes(const std::string& regex) {
  return {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
}

Json byte_level(bool adds_space) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", adds_space}, {"trim_offsets", true}, {"use_regex", true}};
}

Json falcon() {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
            byte_level(false),
            {{"type", "Digits"}, {"individual_digits", false}},
            {{"type", "Split"},
             {"pattern", {{"Regex", "[0-9][0-9][0-9]"}}},
             {"behavior", "Isolated"},
             {"invert", false}}}}};
}

const std::string kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json added_token(const char* content, bool normalized, bool strips) {
  return {{"id", 0},          {"content", content},       {"single_word", false}, {"lstrip", strips},
          {"rstrip", strips}, {"normalized", normalized}, {"special", true}};
}

}  // namespace

TEST_CASE("new pieces of every length between known ones stay in their order") {
  std::mt19937 random(31);
  const Json model = byte_level_model(random, 300, true);
  for (int round = 0; round < 20; ++round) {
    const Engines engines({{"model", model}, {"pre_tokenizer", byte_level(false)}});  // Nothing learned yet.
    std::vector<std::string> words = {" a", "b"};
    for (int i = 0; i < 40; ++i) {
      words.emplace_back(" ");
      for (size_t left = 1 + random() % (i % 5 == 0 ? 90 : 20); left > 0; --left)
        words.back() += static_cast<char>('a' + random() % 26);
    }
    std::string text;
    for (int i = 0; i < 1000; ++i) text += words[random() % 3 == 0 ? random() % words.size() : random() % 2];
    engines.check(text);
    engines.check(text);
  }
}

TEST_CASE("byte-level BPE gives the reference's ids") {
  std::mt19937 random(11);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(12)); ++round) {
    Json file = {{"model", byte_level_model(random, 20 + round * 40, round % 2 == 0)},
                 {"pre_tokenizer", round % 3 == 0 ? byte_level(round % 2 == 1) : split_then_bytes(kCl100k)}};
    if (round % 4 == 1) file["normalizer"] = {{"type", "NFC"}};
    if (round % 4 == 2) file["normalizer"] = {{"type", "NFKC"}};
    if (round % 2 == 1)
      file["added_tokens"] = {added_token("<|", false, round % 4 == 1), added_token("the", true, false)};
    check_nasty(Engines(file), random, 300);
  }
}

TEST_CASE("punctuation before bytes and numbers behind them are cut as the reference cuts them") {
  std::mt19937 random(16);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(8)); ++round) {
    const Engines engines(
        {{"model", byte_level_model(random, 20 + round * 60, round % 2 == 0)}, {"pre_tokenizer", falcon()}});
    check_nasty(engines, random, 300);
    for (const char* unit : {"1", "ò", "⼠", "²5", "-", "x1"})  // Longer than the tables and the windows.
      for (const size_t count : {30, 20000}) {
        std::string text;
        for (size_t i = 0; i < count; ++i) text += unit;
        engines.check(text + "7 ");
      }
    if (round == 0) test::check_long_text(engines, random);
  }
}

TEST_CASE("a pattern that nobody wrote a splitter for gives the reference's ids") {
  std::mt19937 random(17);
  for (const char* regex : {R"( ?[^(\s|[.,!?…。，、।۔،])]+)", R"(\p{Lu}?\p{Ll}+|\p{N}{2}|\s+$)"}) {
    const Engines engines(
        {{"model", byte_level_model(random, 300, true)}, {"pre_tokenizer", split_then_bytes(regex)}});
    check_nasty(engines, random, 300);
    test::check_long_text(engines, random);
  }
}

TEST_CASE("template, truncation and padding of the file apply") {
  std::mt19937 random(12);
  const Json model = byte_level_model(random, 100, false);
  const Json before = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  for (const bool repeats : {false, true}) {
    Json single = {before, text};
    if (repeats) single.push_back(text);
    Json file = {{"model", model},
                 {"pre_tokenizer", byte_level(false)},
                 {"added_tokens", {added_token("<s>", false, false)}},
                 {"post_processor",
                  {{"type", "TemplateProcessing"},
                   {"single", single},
                   {"pair", {text, {{"Sequence", {{"id", "B"}, {"type_id", 0}}}}}},
                   {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {256}}, {"tokens", {"<s>"}}}}}}}}};
    check_nasty(Engines(file), random, 50);
    file["truncation"] = {
        {"direction", "Left"}, {"max_length", 9}, {"strategy", "LongestFirst"}, {"stride", 0}};
    check_nasty(Engines(file), random, 50);
    file["padding"] = {
        {"strategy", "BatchLongest"}, {"direction", "Right"}, {"pad_to_multiple_of", nullptr}, {"pad_id", 3},
        {"pad_type_id", 0},           {"pad_token", "x"}};
    const Engines engines(file);
    check_nasty(engines, random, 50);
    const std::vector<std::string_view> texts = {"a", "the World", "", "hello"};
    const auto expected = engines.reference->encode_batch(texts);
    const auto found = engines.fast->encode_batch(texts);
    CHECK(found->ids == expected->ids);
    CHECK(found->offsets == expected->offsets);
  }
}

TEST_CASE("a batch has the same ids on any number of threads, also of texts that are cut for them") {
  std::mt19937 random(13);
  Json file = {{"model", byte_level_model(random, 200, false)},
               {"normalizer", {{"type", "NFC"}}},
               {"pre_tokenizer", split_then_bytes(kCl100k)},
               {"added_tokens", {added_token("<|", false, false)}}};
  for (const bool is_gpt2 : {false, true}) {
    if (is_gpt2) file["pre_tokenizer"] = byte_level(false);
    const Engines engines(file);
    std::vector<std::string> texts(1);
    while (texts[0].size() < 5'000'000) texts[0] += test::nasty_text(random, 30);
    for (int i = 0; i < 500; ++i) texts.push_back(i % 50 == 0 ? "" : test::nasty_text(random, 400));
    std::vector<std::string_view> views(texts.begin(), texts.end());
    const auto one = engines.fast->encode_batch(views, {}, 1);
    REQUIRE(one.ok());
    for (const unsigned threads : {2u, 3u, 16u}) {
      const auto many = engines.fast->encode_batch(views, {}, threads);
      REQUIRE(many.ok());
      REQUIRE(many->offsets == one->offsets);
      REQUIRE(many->ids == one->ids);
    }
    for (size_t i = 1; i < texts.size(); i += 37) {
      const auto expected = engines.reference->encode(texts[i]);
      REQUIRE(std::equal(expected->begin(), expected->end(), (*one)[i].begin(), (*one)[i].end()));
    }
  }
}

TEST_CASE("a batch of nothing is nothing") {
  std::mt19937 random(15);
  const Engines engines(
      {{"model", byte_level_model(random, 10, false)}, {"pre_tokenizer", byte_level(false)}});
  for (const unsigned threads : {0u, 1u, 5u}) {
    const auto none = engines.fast->encode_batch({}, {}, threads);
    REQUIRE(none.ok());
    CHECK(none->size() == 0);
    const std::vector<std::string_view> empty(3);
    CHECK(engines.fast->encode_batch(empty, {}, threads)->size() == 3);
  }
}

TEST_CASE("text that is not UTF-8 is named with its place") {
  std::mt19937 random(14);
  const Engines engines(
      {{"model", byte_level_model(random, 10, false)}, {"pre_tokenizer", byte_level(false)}});
  CHECK(engines.fast->encode("abc\xFFz").error().message ==
        engines.reference->encode("abc\xFFz").error().message);
  std::string text(3'000'000, 'a');
  for (size_t i = 0; i < text.size(); i += 60) text[i] = '\n';
  text[2'999'999] = '\xC3';
  const std::vector<std::string_view> texts = {"fine", text};
  const auto batch = engines.fast->encode_batch(texts, {}, 2);
  REQUIRE_FALSE(batch.ok());
  CHECK(batch.error().message == "text 1: text is not UTF-8 at byte 2999999");
}

}  // namespace lmemo::tokenizer
