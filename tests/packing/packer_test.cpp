#include "packing/packer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/test_scale.h"

using namespace lmemo;

namespace {

uint32_t filled(std::span<const Piece> row) {
  uint32_t tokens = 0;
  for (const Piece& piece : row) tokens += piece.length;
  return tokens;
}

// Every token of every document in exactly one piece, no row too long, no piece empty.
void check_whole(const PackedRows& packed, std::span<const uint32_t> lengths, uint32_t row_tokens) {
  std::vector<std::map<uint32_t, uint32_t>> pieces(lengths.size());
  REQUIRE(packed.row_starts.back() == packed.pieces.size());
  for (size_t row = 0; row < packed.row_count(); ++row) {
    REQUIRE(!packed.row(row).empty());
    REQUIRE(filled(packed.row(row)) <= row_tokens);
    for (const Piece& piece : packed.row(row)) {
      REQUIRE(piece.length > 0);
      REQUIRE(pieces.at(piece.document).emplace(piece.offset, piece.length).second);
    }
  }
  for (size_t document = 0; document < lengths.size(); ++document) {
    uint32_t next = 0;
    for (const auto& [offset, length] : pieces[document]) {
      REQUIRE(offset == next);
      next += length;
    }
    REQUIRE(next == lengths[document]);
  }
}

// The textbook's best-fit decreasing, by looking at every row.
std::vector<uint32_t> plain_best_fit_spaces(std::vector<uint32_t> pieces, uint32_t row_tokens) {
  std::sort(pieces.rbegin(), pieces.rend());
  std::vector<uint32_t> spaces;
  for (const uint32_t length : pieces) {
    size_t best = spaces.size();
    for (size_t row = 0; row < spaces.size(); ++row)
      if (spaces[row] >= length && (best == spaces.size() || spaces[row] < spaces[best])) best = row;
    if (best == spaces.size()) spaces.push_back(row_tokens);
    spaces[best] -= length;
  }
  std::sort(spaces.begin(), spaces.end());
  return spaces;
}

std::vector<uint32_t> random_lengths(std::mt19937& random, size_t count, uint32_t longest) {
  std::vector<uint32_t> lengths(count);
  for (uint32_t& length : lengths) length = random() % (random() % longest + 1);
  return lengths;
}

}  // namespace

TEST_CASE("every strategy keeps every token, in rows that are not too long") {
  std::mt19937 random(1);
  for (int round = 0; round < test::scaled(60); ++round) {
    const uint32_t row_tokens = 1 + random() % (round % 2 == 0 ? 100 : 9000);
    const std::vector<uint32_t> lengths = random_lengths(random, random() % 400, 3 * row_tokens + 1);
    for (const PackStrategy strategy : {PackStrategy::best_fit, PackStrategy::greedy, PackStrategy::concat})
      check_whole(pack(strategy, lengths, row_tokens), lengths, row_tokens);
  }
}

TEST_CASE("best_fit is best-fit decreasing, and cuts no document that fits") {
  std::mt19937 random(2);
  for (int round = 0; round < test::scaled(40); ++round) {
    const uint32_t row_tokens = 1 + random() % 5000;
    const std::vector<uint32_t> lengths = random_lengths(random, random() % 300, 2 * row_tokens);
    const PackedRows packed = pack(PackStrategy::best_fit, lengths, row_tokens);
    std::vector<uint32_t> spaces, pieces;
    for (size_t row = 0; row < packed.row_count(); ++row)
      spaces.push_back(row_tokens - filled(packed.row(row)));
    std::sort(spaces.begin(), spaces.end());
    for (const uint32_t length : lengths) {
      for (uint32_t rest = length; rest > 0; rest -= std::min(rest, row_tokens))
        pieces.push_back(std::min(rest, row_tokens));
    }
    CHECK(spaces == plain_best_fit_spaces(pieces, row_tokens));
    for (const Piece& piece : packed.pieces)
      CHECK((lengths[piece.document] > row_tokens || piece.length == lengths[piece.document]));
  }
}

TEST_CASE("concat leaves no space but in the last row") {
  const std::vector<uint32_t> lengths = {3, 9, 0, 1, 4, 30};
  const PackedRows packed = pack(PackStrategy::concat, lengths, 8);
  for (size_t row = 0; row + 1 < packed.row_count(); ++row) CHECK(filled(packed.row(row)) == 8);
  CHECK(packed.row_count() == 6);
}

TEST_CASE("greedy keeps the order of the documents") {
  const std::vector<uint32_t> lengths = {5, 4, 20, 2};
  const PackedRows packed = pack(PackStrategy::greedy, lengths, 8);
  std::vector<uint32_t> documents;
  for (const Piece& piece : packed.pieces) documents.push_back(piece.document);
  CHECK(documents == std::vector<uint32_t>{0, 1, 2, 2, 2, 3});
  CHECK(packed.row_starts == std::vector<uint32_t>{0, 1, 2, 3, 4, 6});
}

TEST_CASE("no documents, no rows") {
  for (const PackStrategy strategy : {PackStrategy::best_fit, PackStrategy::greedy, PackStrategy::concat}) {
    CHECK(pack(strategy, {}, 512).row_count() == 0);
    CHECK(pack(strategy, std::vector<uint32_t>{0, 0}, 512).row_count() == 0);
    CHECK(pack_strategy_named(name_of(strategy)) == strategy);
  }
}
