// Texts in other forms than UTF-8 against their own UTF-8.
#include "tokenizer/source_text.h"

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tokenizer/reference/byte_characters.h"

namespace lmemo::tokenizer {
namespace {

using Form = SourceText::Form;

// A token for each byte.
std::shared_ptr<const Tokenizer> byte_tokenizer() {
  nlohmann::json vocab = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[bytes_as_characters(std::string(1, static_cast<char>(byte)))] = byte;
  const nlohmann::json file = {
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}}};
  auto made = Tokenizer::from_json(file.dump());
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  REQUIRE((*made)->engine() == "fast");
  return *made;
}

std::string utf8_of_points(const std::u32string& points) {
  std::string text;
  for (const char32_t point : points) REQUIRE(append_utf8(text, point));
  return text;
}

// Characters below `limit`, ASCII in runs of up to 40, so that blocks of it begin and end anywhere.
std::u32string random_points(std::mt19937& random, size_t count, uint32_t limit) {
  std::u32string points;
  while (points.size() < count) {
    for (size_t run = random() % 40; run > 0; --run) points += static_cast<char32_t>("ab \n9/"[random() % 6]);
    for (size_t run = random() % 5; run > 0; --run) {
      const uint32_t point = random() % limit;
      if (point < 0xD800 || point > 0xDFFF) points += static_cast<char32_t>(point);
    }
  }
  return points;
}

// The same text in the narrowest form that holds it, as Python keeps it.
struct Kept {
  std::string bytes;
  std::u16string units;
  std::u32string points;
  SourceText text;

  Kept(const std::u32string& all, uint32_t limit) : points(all) {
    if (limit <= 0x100) {
      bytes.assign(all.begin(), all.end());
      text = {bytes.data(), bytes.size(), Form::latin1};
    } else if (limit <= 0x10000) {
      units.assign(all.begin(), all.end());
      text = {units.data(), units.size(), Form::ucs2};
    } else {
      text = {points.data(), points.size(), Form::ucs4};
    }
  }
  Kept(const Kept&) = delete;
};

constexpr uint32_t kLimits[] = {0x80, 0x100, 0x800, 0x10000, 0x110000};

TEST_CASE("every form becomes its UTF-8, whole and in parts") {
  std::mt19937 random(3);
  TextBuffer buffer;
  for (const uint32_t limit : kLimits)
    for (size_t count = 0; count < 200; ++count) {
      const std::u32string points = random_points(random, count, limit);
      const Kept kept(points, limit);
      const size_t begin = random() % (points.size() + 1),
                   end = begin + random() % (points.size() - begin + 1);
      const Result<std::string_view> part = utf8_of(kept.text, begin, end, buffer);
      REQUIRE(part.ok());
      CHECK(*part == utf8_of_points(points.substr(begin, end - begin)));
      CHECK(find_unit(kept.text, '\n', begin) == std::min(points.find(U'\n', begin), points.size()));
      if (begin < points.size()) CHECK(unit_at(kept.text, begin) == points[begin]);
    }
}

TEST_CASE("every character becomes its UTF-8, among short and long ones") {
  TextBuffer buffer;
  std::u32string points;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    points += static_cast<char32_t>(c);
    if (c % 7 == 0) points += U'x';
    if (c % 11 == 0) points += U'\u4E2D';
  }
  const auto check = [&](size_t begin, size_t end, uint32_t limit) {
    const Kept kept(points.substr(begin, end - begin), limit);
    const Result<std::string_view> text = utf8_of(kept.text, 0, kept.text.unit_count, buffer);
    REQUIRE(text.ok());
    CHECK(*text == utf8_of_points(kept.points));
  };
  const size_t second_plane = points.find(static_cast<char32_t>(0x10000));
  for (const size_t begin : {size_t{0}, size_t{3}}) {
    check(begin, points.find(static_cast<char32_t>(0x100)), 0x110000);
    check(begin, second_plane, 0x10000);
    check(begin, second_plane, 0x110000);
    check(begin, points.size(), 0x110000);
  }
}

TEST_CASE("half a surrogate pair, and what is no character, is refused with its place") {
  TextBuffer buffer;
  for (const char16_t half : {u'\xD800', u'\xDBFF', u'\xDC00', u'\xDFFF'}) {
    std::u16string units(100, u'x');
    units[70] = half;
    const Result<std::string_view> text =
        utf8_of({units.data(), units.size(), Form::ucs2}, 0, units.size(), buffer);
    REQUIRE(!text.ok());
    CHECK(text.error().code == ErrorCode::invalid_argument);
    CHECK(text.error().message.find("character 70 ") != std::string::npos);
  }
  for (const uint32_t none :
       {0x110000u, 0xD800u, 0xDFFFu, 0x7FFFFFFFu, 0x80000000u, 0x80000041u, 0xFFFFFFFFu})
    for (const char32_t around : {U'a', U'\u4E2D'}) {
      std::u32string units(40, around);
      units[21] = static_cast<char32_t>(none);
      const Result<std::string_view> text =
          utf8_of({units.data(), units.size(), Form::ucs4}, 0, units.size(), buffer);
      REQUIRE(!text.ok());
      CHECK(text.error().message.find("character 21 ") != std::string::npos);
    }
}

TEST_CASE("a long text that ends inside a character is refused, and nothing behind it is read") {
  const auto tokenizer = byte_tokenizer();
  for (const std::string_view end : {"x\n\xF0", "x\n\xE4\xB8", "\xF0\nx", "\xF0\n"}) {
    std::string lines;
    while (lines.size() < 1'500'000) lines.append(65'530, 'y').append(end.substr(0, 2));
    for (const size_t size : {size_t{400'000}, size_t{1'500'000}}) {
      const std::string text = lines.substr(0, size) + std::string(end);
      const std::vector<char> exact(text.begin(),
                                    text.end());  // A reader of more would be seen by sanitizers.
      const SourceText source = SourceText::of({exact.data(), exact.size()});
      for (const unsigned threads : {1u, 2u}) CHECK(!tokenizer->encode_texts({&source, 1}, {}, threads).ok());
    }
  }
}

TEST_CASE("texts of all forms get the ids of their UTF-8, on any number of threads, long ones too") {
  const auto tokenizer = byte_tokenizer();
  std::mt19937 random(5);
  std::vector<std::unique_ptr<Kept>> kept;
  std::vector<std::string> utf8;
  for (int i = 0; i < 300; ++i) {
    const uint32_t limit = kLimits[random() % 5];
    const size_t count = i % 100 == 7 ? 3'000'000 : random() % 5000;  // Some are cut between lines.
    const std::u32string points = random_points(random, count, limit);
    kept.push_back(std::make_unique<Kept>(points, limit));
    utf8.push_back(utf8_of_points(points));
  }
  std::vector<SourceText> texts;
  for (const auto& one : kept) texts.push_back(one->text);
  const std::vector<std::string_view> views(utf8.begin(), utf8.end());
  const Result<TokenBatch> expected = tokenizer->encode_batch(views, {}, 1);
  REQUIRE(expected.ok());
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    const Result<TokenBatch> found = tokenizer->encode_texts(texts, {}, threads);
    REQUIRE(found.ok());
    CHECK(found->offsets == expected->offsets);
    CHECK(found->ids == expected->ids);
    const Result<TokenBatch> again = tokenizer->encode_batch(views, {}, threads);
    REQUIRE(again.ok());
    CHECK(again->ids == expected->ids);
  }
  std::u16string broken(3'000'000, u'x');
  broken[2'900'000] = u'\xD800';
  texts.insert(texts.begin() + 50, SourceText{broken.data(), broken.size(), Form::ucs2});
  const Result<TokenBatch> refused = tokenizer->encode_texts(texts, {}, 2);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("text 50: character 2900000 ") != std::string::npos);
}

}  // namespace
}  // namespace lmemo::tokenizer
