#include "tokenizer/fast/piece_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lmemo::tokenizer {
namespace {

// The ids that everybody would remember for this piece.
std::vector<uint32_t> ids_of(uint32_t number) { return std::vector<uint32_t>(1 + number % 7, number); }

std::vector<uint32_t> found(const PieceTable& table, const std::string& piece) {
  uint32_t room[32];
  const PieceTable::Key key = PieceTable::key_of(piece);
  const uint32_t* const end = table.copy_ids(key, key.hash(), room);
  return end ? std::vector<uint32_t>(room, const_cast<uint32_t*>(end)) : std::vector<uint32_t>();
}

void put(PieceTable& table, const std::string& piece, const std::vector<uint32_t>& ids) {
  const PieceTable::Key key = PieceTable::key_of(piece);
  table.put(key, key.hash(), ids);
}

}  // namespace

TEST_CASE("a piece is found again with all its ids, and no other is") {
  PieceTable table(10);
  put(table, "a", {1});
  put(table, std::string("a\0", 2), {2, 3});
  put(table, "fifteen letters", {4, 5, 6, 7, 8});
  CHECK(found(table, "a") == std::vector<uint32_t>{1});
  CHECK(found(table, std::string("a\0", 2)) == std::vector<uint32_t>{2, 3});
  CHECK(found(table, "fifteen letters") == std::vector<uint32_t>{4, 5, 6, 7, 8});
  CHECK(found(table, "b").empty());
  CHECK(found(table, std::string("a\0\0", 3)).empty());
}

TEST_CASE("a full table forgets what comes later and mixes nothing up") {
  PieceTable table(6);
  for (uint32_t i = 0; i < 1000; ++i) put(table, std::to_string(i), ids_of(i));
  size_t known = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const std::vector<uint32_t> ids = found(table, std::to_string(i));
    known += !ids.empty();
    if (!ids.empty()) CHECK(ids == ids_of(i));
  }
  CHECK(known >= 8);
  CHECK(known <= 64);
}

}  // namespace lmemo::tokenizer
