#include "lmemo/key.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "base/hex.h"

namespace lmemo {
namespace {

// The strings of keys.json, one after another: enough for a file that tests/golden/make_keys.py writes, one vector a line.
class JsonStrings {
 public:
  explicit JsonStrings(std::string_view line) : line_(line) {}

  // The text after the next `"name": `, or nullopt when there is none before `end`.
  std::optional<std::string> next(std::string_view name, size_t end = std::string_view::npos) {
    const std::string mark = "\"" + std::string(name) + "\": \"";
    const size_t found = line_.find(mark, position_);
    if (found == std::string_view::npos || found >= end) return std::nullopt;
    position_ = found + mark.size();
    std::string text;
    for (; line_[position_] != '"'; ++position_) {
      if (line_[position_] != '\\') {
        text += line_[position_];
        continue;
      }
      const char escaped = line_[++position_];
      if (escaped == 'u') {  // Below U+0800 is all there is.
        const auto code =
            static_cast<unsigned>(std::stoul(std::string(line_.substr(position_ + 1, 4)), nullptr, 16));
        position_ += 4;
        if (code >= 0x80) text += static_cast<char>(0xc0 | code >> 6);
        text += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
      } else {
        text += escaped == 'n' ? '\n' : escaped;
      }
    }
    return text;
  }
  size_t end_of_fields() const { return line_.find("], \"encoding\""); }

 private:
  std::string_view line_;
  size_t position_ = 0;
};

FieldValue value_of(const std::string& type, const std::string& text) {
  if (type == "bool") return text == "true";
  if (type == "int") return FieldValue(int64_t{std::stoll(text)});
  if (type == "float") return std::bit_cast<double>(std::stoull(text, nullptr, 16));
  if (type == "text") return *from_hex(text);
  if (type == "blob") return Blob{*from_hex(text)};
  REQUIRE(type == "none");
  return {};
}

template <typename Visit>
void for_each_golden_line(std::string_view needle, Visit visit) {
  std::ifstream file(LMEMO_TEST_SOURCE_DIR "/golden/keys.json");
  bool is_refused = false;
  for (std::string line; std::getline(file, line);) {
    is_refused |= line.find("\"refused\"") != std::string::npos;
    if (line.find("\"note\"") != std::string::npos && is_refused == (needle == "refused")) visit(line);
  }
}

Key key_of(std::vector<Field> fields) {
  Result<Key> key = Key::of("tokens", std::move(fields));
  REQUIRE(key.ok());
  return *key;
}

TEST_CASE("the golden vectors have the encodings and digests they have always had") {
  int vectors = 0;
  for_each_golden_line("vectors", [&](const std::string& line) {
    JsonStrings strings(line);
    CAPTURE(*strings.next("note"));
    const std::string kind = *strings.next("kind");
    std::vector<Field> fields;
    while (const auto name = strings.next("name", strings.end_of_fields())) {
      const std::string type = *strings.next("type");
      fields.push_back({*name, value_of(type, *strings.next("value"))});
    }
    const Result<Key> key = Key::of(kind, fields);
    REQUIRE(key.ok());
    CHECK(to_hex(key->encoding()) == *strings.next("encoding"));
    CHECK(key->digest().hex() == *strings.next("digest"));
    const Result<Key> again = Key::from_encoding(key->encoding());
    REQUIRE(again.ok());
    CHECK(*again == *key);
    ++vectors;
  });
  CHECK(vectors >= 44);
}

TEST_CASE("the golden encodings that must be refused are refused") {
  int vectors = 0;
  for_each_golden_line("refused", [&](const std::string& line) {
    JsonStrings strings(line);
    CAPTURE(*strings.next("note"));
    const std::string encoding = *from_hex(*strings.next("encoding"));
    const Result<Key> key = Key::from_encoding(bytes_of(encoding));
    REQUIRE_FALSE(key.ok());
    CHECK(key.error().code == ErrorCode::corruption);
    ++vectors;
  });
  CHECK(vectors >= 31);
}

TEST_CASE("the order of fields does not matter, their types do") {
  CHECK(key_of({{"a", 1}, {"b", 2}}) == key_of({{"b", 2}, {"a", 1}}));
  const Key keys[] = {key_of({{"a", 1}}),
                      key_of({{"a", 1.0}}),
                      key_of({{"a", true}}),
                      key_of({{"a", "1"}}),
                      key_of({{"a", Blob{"1"}}}),
                      key_of({{"a", FieldValue()}}),
                      key_of({})};
  for (const Key& one : keys)
    for (const Key& other : keys) CHECK((&one == &other) == (one == other));
}

TEST_CASE("a text longer than 256 bytes counts in full and is stored as its digest") {
  const std::string text(257, 'x');
  const Key key = key_of({{"text", text}});
  CHECK(key.encoding().size() < 100);
  CHECK_FALSE(key == key_of({{"text", text + "y"}}));
  const FieldValue stored = key.fields()[0].value;
  CHECK(stored == FieldValue(text).as_stored());
  CHECK(key_of({{"text", stored}}) == key);
  CHECK_FALSE(key_of({{"text", Blob{text}}}) == key);
}

TEST_CASE("every NaN is one NaN, and the two zeros are two") {
  CHECK(key_of({{"x", std::nan("1")}}) == key_of({{"x", -std::nan("2")}}));
  CHECK_FALSE(key_of({{"x", 0.0}}) == key_of({{"x", -0.0}}));
}

TEST_CASE("kinds and names out of bounds are refused with a reason") {
  for (const std::string& kind : {std::string(), std::string("Tokens"), std::string("a b"), std::string("ä"),
                                  std::string(65, 'k'), std::string("a/b")})
    CHECK_FALSE(Key::of(kind, {}).ok());
  CHECK(Key::of(std::string(64, 'k'), {}).ok());
  for (const std::string& name : {std::string(), std::string(65, 'n'), std::string("a\0b", 3)})
    CHECK_FALSE(Key::of("k", {{name, 1}}).ok());
  CHECK(Key::of("k", {{"a", 1}, {"a", 1}}).error().message == "field \"a\" is given twice");
  std::vector<Field> many;
  for (int i = 0; i < 65; ++i) many.push_back({"f" + std::to_string(i), i});
  CHECK_FALSE(Key::of("k", many).ok());
  many.pop_back();
  CHECK(Key::of("k", many)->fields().size() == 64);
}

TEST_CASE("an encoding cut anywhere is refused") {
  const Key key =
      key_of({{"a", 1}, {"b", "text"}, {"c", 0.5}, {"d", Blob{"bytes"}}, {"e", std::string(300, 'x')}});
  for (size_t cut = 0; cut < key.encoding().size(); ++cut)
    CHECK_FALSE(Key::from_encoding(key.encoding().first(cut)).ok());
  CHECK(Key::from_encoding(key.encoding()).ok());
}

}  // namespace
}  // namespace lmemo
