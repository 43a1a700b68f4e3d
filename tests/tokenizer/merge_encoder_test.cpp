#include "tokenizer/fast/merge_encoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/test_scale.h"

namespace lmemo::tokenizer {
namespace {

// A made-up model: atoms a, b, c, and merges of whatever tokens there are so far, in any order.
struct MadeUpBpe {
  std::vector<std::string> texts;  // By id.
  std::vector<MergeEncoder::Merge> merges;

  explicit MadeUpBpe(size_t atom_count) {
    for (size_t i = 0; i < atom_count; ++i) texts.emplace_back(1, static_cast<char>('a' + i));
  }

  MadeUpBpe(std::mt19937& random, size_t atom_count, size_t merge_count) : MadeUpBpe(atom_count) {
    std::map<std::string, uint32_t> ids;
    for (uint32_t id = 0; id < texts.size(); ++id) ids[texts[id]] = id;
    std::map<std::pair<uint32_t, uint32_t>, bool> seen;
    while (merges.size() < merge_count) {
      const auto left = static_cast<uint32_t>(random() % texts.size());
      const auto right = static_cast<uint32_t>(random() % texts.size());
      if (!seen.try_emplace({left, right}, true).second) {
        if (seen.size() == texts.size() * texts.size()) break;
        continue;
      }
      const std::string whole = texts[left] + texts[right];
      if (whole.size() > 12) continue;
      const auto [entry, is_new] = ids.try_emplace(whole, static_cast<uint32_t>(texts.size()));
      if (is_new) texts.push_back(whole);
      merges.push_back({left, right, entry->second, static_cast<uint32_t>(merges.size())});
    }
  }

  // A merge of these two, the last so far.
  void add(const std::string& left, const std::string& right) {
    const auto id_of = [&](const std::string& text) {
      const auto found = std::find(texts.begin(), texts.end(), text);
      if (found == texts.end()) texts.push_back(text);
      return static_cast<uint32_t>(std::find(texts.begin(), texts.end(), text) - texts.begin());
    };
    const uint32_t left_id = id_of(left), right_id = id_of(right);
    merges.push_back({left_id, right_id, id_of(left + right), static_cast<uint32_t>(merges.size())});
  }

  // As it is written down: the lowest rank first, of equal ones the leftmost.
  std::vector<uint32_t> merged(const std::string& text) const {
    std::vector<uint32_t> ids;
    for (const char c : text) ids.push_back(static_cast<uint32_t>(c - 'a'));
    for (;;) {
      const MergeEncoder::Merge* best = nullptr;
      size_t best_place = 0;
      for (size_t i = 0; i + 1 < ids.size(); ++i)
        for (const MergeEncoder::Merge& merge : merges)
          if (merge.left == ids[i] && merge.right == ids[i + 1] && (!best || merge.rank < best->rank)) {
            best = &merge;
            best_place = i;
          }
      if (!best) return ids;
      ids[best_place] = best->id;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_place) + 1);
    }
  }

  std::optional<MergeEncoder> encoder(size_t atom_count) const {
    std::vector<MergeEncoder::Token> tokens;
    std::vector<uint32_t> atoms;
    for (uint32_t id = 0; id < texts.size(); ++id) tokens.push_back({texts[id], id});
    for (uint32_t id = 0; id < atom_count; ++id) atoms.push_back(id);
    return MergeEncoder::make(tokens, atoms, merges, static_cast<uint32_t>(texts.size()));
  }
};

std::string random_text(std::mt19937& random, size_t atom_count, size_t max_length) {
  std::string text(1 + random() % max_length, 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % atom_count);
  return text;
}

}  // namespace

TEST_CASE("any merge list gives what merging gives, also if it uses tokens before it makes them") {
  std::mt19937 random(7);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(400)); ++round) {
    const size_t atom_count = 1 + random() % 3;
    MadeUpBpe bpe(random, atom_count, 1 + random() % 40);
    // In any order; some have the same rank (as all merges to one token in a tiktoken file).
    std::shuffle(bpe.merges.begin(), bpe.merges.end(), random);
    for (size_t i = 0; i < bpe.merges.size(); ++i)
      bpe.merges[i].rank = static_cast<uint32_t>(round % 3 == 0   ? i
                                                 : round % 3 == 1 ? i / 3
                                                                  : bpe.merges[i].id);
    const std::optional<MergeEncoder> encoder = bpe.encoder(atom_count);
    REQUIRE(encoder);
    for (int i = 0; i < 60; ++i) {
      const std::string text = random_text(random, atom_count, i % 3 == 0 ? 60 : 31);
      IdBuffer ids;
      encoder->encode(text, ids);
      const auto made = ids.from(0);
      REQUIRE(std::vector<uint32_t>(made.begin(), made.end()) == bpe.merged(text));
    }
  }
}

TEST_CASE("short pieces side by side become what each becomes alone") {
  std::mt19937 random(23);
  for (size_t round = 0; round < static_cast<size_t>(test::scaled(200)); ++round) {
    const size_t atom_count = 1 + random() % 3;
    const MadeUpBpe bpe(random, atom_count, 1 + random() % 40);
    const std::optional<MergeEncoder> encoder = bpe.encoder(atom_count);
    REQUIRE(encoder);
    std::vector<std::string> texts(1 + random() % 20);
    for (std::string& text : texts) text = random_text(random, atom_count, round % 2 == 0 ? 31 : 9);
    const std::vector<std::string_view> pieces(texts.begin(), texts.end());
    std::vector<IdRange> ranges(pieces.size());
    IdBuffer ids;
    ids.append(7);
    encoder->encode_short(pieces, ids, ranges.data());
    CHECK(ids.data()[0] == 7);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto made = ids.in(ranges[i]);
      REQUIRE(std::vector<uint32_t>(made.begin(), made.end()) == bpe.merged(texts[i]));
      CHECK(ranges[i].first + ranges[i].count <= ids.size());
    }
  }
}

TEST_CASE("a border with more merges than its lines have room for is asked in the next line") {
  // Every a…a meets every b…b at the same two bytes, and many pairs merge: some lines spill.
  MadeUpBpe bpe(2);
  for (size_t length = 2; length <= 12; ++length)
    for (const char letter : {'a', 'b'}) bpe.add(std::string(length - 1, letter), std::string(1, letter));
  for (size_t left = 1; left <= 12; ++left)
    for (size_t right = 1; right <= 12; ++right)
      if ((left * right) % 3 != 0) bpe.add(std::string(left, 'a'), std::string(right, 'b'));
  const std::optional<MergeEncoder> encoder = bpe.encoder(2);
  REQUIRE(encoder);
  for (size_t left = 1; left <= 15; ++left)
    for (size_t right = 1; right <= 15; ++right) {
      const std::string text = std::string(left, 'a') + std::string(right, 'b');
      IdBuffer ids;
      encoder->encode(text, ids);
      const auto made = ids.from(0);
      REQUIRE(std::vector<uint32_t>(made.begin(), made.end()) == bpe.merged(text));
    }
}

TEST_CASE("ranks that leave no room for a place are refused") {
  std::mt19937 random(5);
  MadeUpBpe bpe(random, 2, 3);
  bpe.merges.back().rank = MergeTable::kNever - 1;
  CHECK(bpe.encoder(2));
  bpe.merges.back().rank = MergeTable::kNever;
  CHECK(!bpe.encoder(2));
}

TEST_CASE("a long run of one letter is no work for hours") {
  std::mt19937 random(3);
  const MadeUpBpe bpe(random, 1, 20);
  const std::optional<MergeEncoder> encoder = bpe.encoder(1);
  REQUIRE(encoder);
  IdBuffer ids;
  encoder->encode(std::string(3'000'000, 'a'), ids);
  size_t bytes = 0;
  for (const uint32_t id : ids.from(0)) bytes += bpe.texts[id].size();
  CHECK(bytes == 3'000'000);
}

TEST_CASE("runs of a letter that has tokens of many lengths give what merging gives") {
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    // Every split of every length into two others, those of one length one after the other, as some files have it.
    MadeUpBpe bpe(random, 2, 0);
    std::map<size_t, uint32_t> id_of = {{1, 0}};
    for (size_t length = 2; length <= 40; ++length) {
      if (length > 4 && random() % 2 == 0) continue;
      id_of[length] = static_cast<uint32_t>(bpe.texts.size());
      bpe.texts.emplace_back(length, 'a');
    }
    std::vector<size_t> lengths;
    for (const auto& [length, id] : id_of) lengths.push_back(length);
    std::shuffle(lengths.begin() + 4, lengths.end(), random);
    for (const size_t length : lengths)
      for (const auto& [left, left_id] : id_of)
        if (left < length && id_of.contains(length - left))
          bpe.merges.push_back(
              {left_id, id_of[length - left], id_of[length], static_cast<uint32_t>(bpe.merges.size())});
    const std::optional<MergeEncoder> encoder = bpe.encoder(2);
    REQUIRE(encoder);
    for (const size_t run : {size_t{5}, size_t{41}, size_t{100 + random() % 200}}) {
      std::string text;
      while (text.size() < 300) text += std::string(run, 'a') + "b";
      IdBuffer ids;
      encoder->encode(text, ids);
      const auto made = ids.from(0);
      CHECK(std::vector<uint32_t>(made.begin(), made.end()) == bpe.merged(text));
    }
  }
}

}  // namespace lmemo::tokenizer
