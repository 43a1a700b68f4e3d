#include "tokenizer/fast/saved_pieces.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

namespace lmemo::tokenizer {
namespace {

const Digest kTokenizer = *Digest::from_hex(std::string(64, 'a'));

void put(PieceTable& table, const std::string& piece, const std::vector<uint32_t>& ids) {
  const PieceTable::Key key = PieceTable::key_of(piece);
  table.put(key, key.hash(), ids);
}

std::map<std::string, std::vector<uint32_t>> content(const LongPieceTable& table) {
  std::map<std::string, std::vector<uint32_t>> found;
  table.for_each([&](std::string_view piece, std::span<const uint32_t> ids) {
    found[std::string(piece)].assign(ids.begin(), ids.end());
  });
  return found;
}

std::map<std::pair<uint64_t, uint64_t>, std::vector<uint32_t>> content(const PieceTable& table) {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<uint32_t>> found;
  table.for_each([&](const PieceTable::Key& key, std::span<const uint32_t> ids) {
    found[{key.low, key.high}].assign(ids.begin(), ids.end());
  });
  return found;
}

std::string some_file() {
  PieceTable table(8);
  put(table, "a", {1});
  put(table, "eight by", {1, 2, 3});
  put(table, "fifteen letters", {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
  LongPieceTable long_table(6);
  long_table.put("sixteen letters!", std::vector<uint32_t>{20, 21});
  long_table.put(std::string(64, '-'), std::vector<uint32_t>{22});
  return saved_pieces(table, long_table, kTokenizer);
}

}  // namespace

TEST_CASE("a table comes back as it was saved") {
  PieceTable table(10), again(10);
  for (uint32_t i = 0; i < 500; ++i) put(table, std::to_string(i), std::vector<uint32_t>(1 + i % 15, i));
  LongPieceTable long_table(8), long_again(8);
  for (uint32_t i = 16; i <= 64; ++i) long_table.put(std::string(i, 'x'), std::vector<uint32_t>(i, i));
  const std::string file = saved_pieces(table, long_table, kTokenizer);
  const auto count = load_saved_pieces(bytes_of(file), kTokenizer, again, long_again);
  REQUIRE(count.ok());
  CHECK(*count == content(table).size() + content(long_table).size());
  CHECK(content(long_table).size() == 49);
  CHECK(content(again) == content(table));
  CHECK(content(long_again) == content(long_table));
}

TEST_CASE("a file that was cut or in which a byte was flipped changes nothing") {
  const std::string file = some_file();
  for (size_t i = 0; i < file.size(); ++i) {
    PieceTable table(8);
    LongPieceTable long_table(6);
    CHECK_FALSE(load_saved_pieces(bytes_of(file.substr(0, i)), kTokenizer, table, long_table).ok());
    std::string flipped = file;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    CHECK_FALSE(load_saved_pieces(bytes_of(flipped), kTokenizer, table, long_table).ok());
    CHECK(content(table).empty());
    CHECK(content(long_table).empty());
  }
}

TEST_CASE("another tokenizer's file is refused") {
  PieceTable table(8);
  LongPieceTable long_table(6);
  const auto count =
      load_saved_pieces(bytes_of(some_file()), *Digest::from_hex(std::string(64, 'b')), table, long_table);
  REQUIRE_FALSE(count.ok());
  CHECK(count.error().code == ErrorCode::incompatible);
}

}  // namespace lmemo::tokenizer
