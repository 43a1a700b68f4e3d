#include "tokenizer/double_array_trie.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace lmemo::tokenizer {

TEST_CASE("finds the longest of many texts, and every shorter one on the way") {
  std::mt19937 random(5);
  std::set<std::string> texts;
  while (texts.size() < 5000) {
    std::string text(1 + random() % 8, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 256 : 'a' + random() % 3);
    texts.insert(text);
  }
  std::vector<std::pair<std::string_view, uint32_t>> sorted;
  for (const std::string& text : texts) sorted.emplace_back(text, static_cast<uint32_t>(sorted.size()));
  const DoubleArrayTrie trie(sorted);

  for (const auto& [text, value] : sorted) REQUIRE(trie.find(text) == value);
  for (int i = 0; i < 5000; ++i) {
    std::string text(1 + random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 6 == 0 ? random() % 256 : 'a' + random() % 3);
    std::vector<size_t> expected, found;
    for (size_t length = 1; length <= text.size(); ++length)
      if (texts.contains(text.substr(0, length))) expected.push_back(length);
    uint32_t last = DoubleArrayTrie::kNone;
    trie.each_prefix(text.data(), text.data() + text.size(), [&](size_t length, uint32_t value) {
      found.push_back(length);
      last = value;
    });
    REQUIRE(found == expected);
    REQUIRE(trie.longest_prefix(text.data(), text.data() + text.size()) == last);
    REQUIRE((trie.find(text) != DoubleArrayTrie::kNone) == texts.contains(text));
  }
}

TEST_CASE("an empty trie finds nothing") {
  const DoubleArrayTrie trie;
  const std::string text = "text";
  CHECK(trie.longest_prefix(text.data(), text.data() + text.size()) == DoubleArrayTrie::kNone);
  CHECK(trie.find("t") == DoubleArrayTrie::kNone);
}

}  // namespace lmemo::tokenizer
