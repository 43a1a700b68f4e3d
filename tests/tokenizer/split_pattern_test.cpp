#include "tokenizer/fast/split_pattern.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/test_scale.h"
#include "tokenizer/fast/apart_splitter.h"
#include "tokenizer/fast/deepseek_splitter.h"
#include "tokenizer/fast/regex_splitter.h"
#include "tokenizer/nasty_texts.h"
#include "tokenizer/reference/pre_tokenizer.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

struct Pattern {
  const char* name;
  const char* regex;
};

const Pattern kPatterns[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen3.5",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"tekken",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

using Pieces = std::vector<std::string>;

nlohmann::json split_at(const char* regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

Pieces pieces_of(const PieceSplitter& splitter, const std::string& text) {
  Pieces found;
  std::vector<PieceSpan> spans(PieceSplitter::kMinCapacity);
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const base = at;
    const size_t count = splitter.split(base, end, spans.data(), spans.size(), at);
    REQUIRE(count > 0);
    REQUIRE(at > base);
    for (size_t i = 0; i < count; ++i) found.emplace_back(base + spans[i].begin, base + spans[i].end);
  }
  return found;
}

Pieces pieces_of(const PreTokenizer& pre_tokenizer, const std::string& text) {
  std::vector<Piece> pieces{{text, true}};
  pre_tokenizer.split(pieces);
  Pieces found;
  for (const Piece& piece : pieces) found.push_back(piece.text);
  return found;
}

}  // namespace

TEST_CASE("every known pattern cuts as its regex does, with masks and without") {
  std::mt19937 random(1);
  for (const Pattern& pattern : kPatterns) {
    CAPTURE(pattern.name);
    const auto regex = make_pre_tokenizer(split_at(pattern.regex), "pre_tokenizer");
    REQUIRE(regex.ok());
    const std::optional<SplitRules> rules = split_rules_of(pattern.regex);
    REQUIRE(rules);
    const auto plain = make_pattern_splitter(*rules, nullptr, false);
    const auto quick = make_pattern_splitter(*rules, nullptr, true);
    for (size_t i = 0; i < static_cast<size_t>(test::scaled(3000)); ++i) {
      const std::string text = test::nasty_text(random, i % 20 == 0 ? 200 : 16);
      CAPTURE(text);
      const Pieces expected = pieces_of(**regex, text);
      REQUIRE(pieces_of(*plain, text) == expected);
      REQUIRE(pieces_of(*quick, text) == expected);
    }
  }
}

namespace {

// Texts of clauses in scripts without blanks between scraps of ASCII, longer than a block.
std::string mixed_text(std::mt19937& random) {
  static constexpr const char* kBits[] = {
      "中", "文", "信号", "的", "字", "か",     "な",     "カ", "한", "글", "，", "。", "、", "—", "…", "“",
      "é",  "я",  "ж",    "😀", "𠀀", "\u3000", "\u00A0", "²",  "５", "क्",  "a",  "fI", "Ab", "B", "b", "'S",
      "Ж",  "ʰ",  "1",    " ",  " ",  "\n",     "[",      "\\", "'s", "-",  "/",  "(",  "  ", "\t"};
  std::string text;
  for (size_t count = random() % 90; count > 0; --count) {
    const char* const bit = kBits[random() % std::size(kBits)];
    for (size_t run = random() % 6 == 0 ? random() % 30 : 1; run > 0; --run) text += bit;
  }
  return text + "x";
}

// Tokens over some borders between the characters of `mixed_text`, whole and broken.
CharBorders mixed_borders(std::mt19937& random) {
  CharBorders borders;
  for (size_t i = 0; i < 60; ++i) {
    const std::string text = mixed_text(random);
    const size_t begin = random() % text.size();
    borders.add_token(std::string_view(text).substr(begin, 2 + random() % 8));
  }
  return borders;
}

std::vector<size_t> ends_of(const Pieces& pieces) {
  std::vector<size_t> ends;
  for (const std::string& piece : pieces) ends.push_back((ends.empty() ? 0 : ends.back()) + piece.size());
  return ends;
}

}  // namespace

TEST_CASE("every known pattern cuts mixed scripts as its regex does") {
  std::mt19937 random(9);
  for (const Pattern& pattern : kPatterns) {
    CAPTURE(pattern.name);
    const auto regex = make_pre_tokenizer(split_at(pattern.regex), "pre_tokenizer");
    REQUIRE(regex.ok());
    const auto quick = make_pattern_splitter(*split_rules_of(pattern.regex), nullptr, true);
    for (size_t i = 0; i < static_cast<size_t>(test::scaled(1500)); ++i) {
      const std::string text = mixed_text(random);
      CAPTURE(text);
      REQUIRE(pieces_of(*quick, text) == pieces_of(**regex, text));
    }
  }
}

TEST_CASE("words are cut further only where no token reaches over, and are cut at all") {
  std::mt19937 random(7);
  size_t cut = 0;
  for (const Pattern& pattern : kPatterns) {
    CAPTURE(pattern.name);
    const std::optional<SplitRules> rules = split_rules_of(pattern.regex);
    REQUIRE(rules);
    const auto uncut = make_pattern_splitter(*rules, nullptr, false);
    for (size_t i = 0; i < static_cast<size_t>(test::scaled(40)); ++i) {
      auto borders = std::make_shared<CharBorders>(mixed_borders(random));
      const bool has_wholes = i % 2 == 1;
      if (has_wholes)
        for (const char* whole : {"中文", "号", " 的", "，", "か"}) borders->add_whole(whole);
      for (const bool use_simd : {false, true}) {
        const auto splitter = make_pattern_splitter(*rules, borders, use_simd);
        for (size_t k = 0; k < 20; ++k) {
          const std::string text = mixed_text(random);
          CAPTURE(text);
          const Pieces expected = pieces_of(*uncut, text), made = pieces_of(*splitter, text);
          const std::vector<size_t> whole_ends = ends_of(expected), ends = ends_of(made);
          REQUIRE(std::includes(ends.begin(), ends.end(), whole_ends.begin(), whole_ends.end()));
          for (size_t place = 0; place < ends.size(); ++place) {
            const bool is_cut_before =
                place > 0 && !std::binary_search(whole_ends.begin(), whole_ends.end(), ends[place - 1]);
            const bool is_cut_behind = !std::binary_search(whole_ends.begin(), whole_ends.end(), ends[place]);
            if (is_cut_before || is_cut_behind) REQUIRE_FALSE(borders->is_whole(made[place]));
            if (!is_cut_behind) continue;
            ++cut;
            const char* const border = text.data() + ends[place];
            REQUIRE(borders->is_free_between(border - char_bytes_before(text, ends[place]), border,
                                             text.data() + text.size()));
          }
        }
      }
    }
  }
  CHECK(cut > static_cast<size_t>(test::scaled(40)) * 100);
}

TEST_CASE("a border is free only if no token reaches over it") {
  std::mt19937 random(8);
  for (size_t i = 0; i < static_cast<size_t>(test::scaled(200)); ++i) {
    const std::string text = mixed_text(random);
    std::vector<size_t> places;
    for (size_t at = 0; at < text.size(); at += char_bytes(text, at)) places.push_back(at);
    if (places.size() < 2) continue;
    const size_t border = places[1 + random() % (places.size() - 1)];
    // Any part of the text around the border, whole characters or not.
    const size_t begin = border - 1 - random() % std::min<size_t>(border, 5);
    const size_t token_end = border + 1 + random() % std::min<size_t>(text.size() - border, 5);
    CharBorders borders;
    borders.add_token(std::string_view(text).substr(begin, token_end - begin));
    const size_t before = char_bytes_before(text, border), after = char_bytes(text, border);
    CAPTURE(text);
    CHECK_FALSE(borders.is_free_between(text.data() + border - before, text.data() + border,
                                        text.data() + text.size()));
    if (before == 3 && after == 3) CHECK_FALSE(borders.is_free_between_long(text.data() + border));
  }
}

TEST_CASE("what begins with E5 to E9 is a letter, as the masks of blocks take it") {
  for (uint32_t c = 0x5000; c < 0xA000; ++c) {
    const Category category = category_of(c);
    REQUIRE(category >= Category::lu);
    REQUIRE(category <= Category::lo);
  }
}

namespace {

// `run_lengths` in characters: longer than any window. A pattern that tries every way at every place takes shorter ones.
void check_same(const PieceSplitter& splitter, const nlohmann::json& steps,
                const std::vector<size_t>& run_lengths = {9000, 20000, 40001}) {
  const auto expected = make_pre_tokenizer({{"type", "Sequence"}, {"pretokenizers", steps}}, "pre_tokenizer");
  REQUIRE(expected.ok());
  std::mt19937 random(2);
  const auto check = [&](const std::string& text) {
    CAPTURE(text);
    REQUIRE(pieces_of(splitter, text) == pieces_of(**expected, text));
  };
  for (size_t i = 0; i < static_cast<size_t>(test::scaled(6000)); ++i)
    check(test::nasty_text(random, i % 20 == 0 ? 200 : 16));
  // Runs, with and without something behind them.
  for (const char* unit : {"x", "x ", " ", "\n", "-", "\xE4\xB8\xAD", "7", "\x01", "'s", "\xCC\x81"})
    for (const size_t count : run_lengths)
      for (const char* end : {"", "1", "a", "  b", "\n"}) {
        std::string text;
        for (size_t i = 0; i < count; ++i) text += unit;
        check(text + end);
      }
}

}  // namespace

TEST_CASE("DeepSeek's three Splits in one pass") {
  nlohmann::json steps = {
      split_at(R"(\p{N}{1,3})"), split_at("[一-龥\u3040-ゟ゠-ヿ]+"),
      split_at(
          "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
          " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")};
  check_same(*make_deepseek_splitter(nullptr), steps);
  steps.push_back({{"type", "ByteLevel"}});
  CHECK(is_deepseek_split(steps));
  steps[1]["invert"] = true;
  CHECK_FALSE(is_deepseek_split(steps));
}

TEST_CASE("digits apart, and a pattern between them") {
  const nlohmann::json steps = {{{"type", "Digits"}, {"individual_digits", true}},
                                split_at(kPatterns[0].regex)};
  for (const bool use_simd : {false, true})
    check_same(
        *make_apart_splitter(kNumeric, Apart::each, make_pattern_splitter(kGpt2Rules, nullptr, use_simd)),
        steps);
}

TEST_CASE("runs of punctuation apart, and a pattern between them") {
  const nlohmann::json steps = {{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                split_at(kPatterns[0].regex)};
  for (const bool use_simd : {false, true})
    check_same(
        *make_apart_splitter(kPunctuation, Apart::runs, make_pattern_splitter(kGpt2Rules, nullptr, use_simd)),
        steps);
}

TEST_CASE("GPT-2's pattern leaves a run of punctuation whole, whatever it is made of") {
  const auto splitter = make_pattern_splitter(kGpt2Rules, nullptr, true);
  std::string all;
  for (const PropertyRange& range : property_ranges())
    if (range.properties.flags & kPunctuation)
      for (char32_t c = range.first; c <= range.last; ++c) all += utf8_of(std::u32string(1, c));
  CHECK(all.size() > 1000);
  CHECK(pieces_of(*splitter, all) == Pieces{all});
}

TEST_CASE("any pattern is matched on UTF-8 as the reference matches it") {
  for (const Pattern& pattern : kPatterns) {
    CAPTURE(pattern.name);
    check_same(*make_regex_splitter(pattern.regex, nullptr), nlohmann::json::array({split_at(pattern.regex)}),
               {9000});
  }
  for (const char* regex :
       {R"( ?[^(\s|[.,!?…。，、।۔،])]+)", R"(\p{N})", R"([0-9]{2,3}+|[a-z]*?e|(?>a+)b)",
        R"(é|中+?文|(?=a)..|(?!')\S{1,4})", R"((a|aa)+\n|(x?y){1,3}z|\s$)", R"((?i:THE|ING)|.)"}) {
    CAPTURE(regex);
    const auto splitter = make_regex_splitter(regex, nullptr);
    REQUIRE(splitter);
    check_same(*splitter, nlohmann::json::array({split_at(regex)}), {300});
  }
}

TEST_CASE("a pattern that tries exponentially many ways comes to an end") {
  const auto splitter = make_regex_splitter("(?:a{1,2}){1,}b", nullptr);
  REQUIRE(splitter);
  const std::string text = std::string(300, 'a') + "c";
  CHECK(pieces_of(*splitter, text) == Pieces{text});
  CHECK(pieces_of(*splitter, "c" + std::string(300, 'a') + "b") == Pieces{"c", std::string(300, 'a') + "b"});
}

TEST_CASE("a pattern that looks back, or matches nothing, is left to the reference") {
  for (const char* regex : {R"((?<=a)b)", R"(^a)", R"(\ba)", R"(a\B)", R"(\Aa)", "a*", "a?|b", "("})
    CHECK_MESSAGE(make_regex_splitter(regex, nullptr) == nullptr, regex);
}

TEST_CASE("a pattern that is one letter off is not known") {
  CHECK_FALSE(split_rules_of(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s)"));
  CHECK_FALSE(split_rules_of(""));
}

}  // namespace lmemo::tokenizer
