#include "tokenizer/fast/long_piece_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lmemo::tokenizer {
namespace {

std::string piece_of(uint32_t number) { return std::string(16 + number % 40, '-') + std::to_string(number); }
std::vector<uint32_t> ids_of(uint32_t number) { return std::vector<uint32_t>(1 + number % 16, number); }

std::vector<uint32_t> found(const LongPieceTable& table, const std::string& piece) {
  uint32_t room[LongPieceTable::kMaxBytes];
  const uint32_t* const end = table.copy_ids(piece, room);
  return end ? std::vector<uint32_t>(room, const_cast<uint32_t*>(end)) : std::vector<uint32_t>();
}

}  // namespace

TEST_CASE("a long piece is found again with its ids, and no other is") {
  LongPieceTable table(13);
  for (uint32_t i = 0; i < 400; ++i) table.put(piece_of(i), ids_of(i));
  for (uint32_t i = 0; i < 400; ++i) CHECK(found(table, piece_of(i)) == ids_of(i));
  for (uint32_t i = 400; i < 800; ++i) CHECK(found(table, piece_of(i)).empty());
}

TEST_CASE("a full table of long pieces forgets what comes later and mixes nothing up") {
  LongPieceTable table(6);
  size_t known = 0;
  for (uint32_t i = 0; i < 2000; ++i) table.put(piece_of(i), ids_of(i));
  for (uint32_t i = 0; i < 2000; ++i) {
    const std::vector<uint32_t> ids = found(table, piece_of(i));
    known += !ids.empty();
    if (!ids.empty()) CHECK(ids == ids_of(i));
  }
  CHECK(known >= 8);
  CHECK(known <= 64);
}

}  // namespace lmemo::tokenizer
