// Both tables of pieces under threads that put and find at once.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tokenizer/fast/long_piece_table.h"
#include "tokenizer/fast/piece_table.h"

namespace lmemo::tokenizer {
namespace {

constexpr uint32_t kPieces = 2000;

std::vector<uint32_t> ids_of(uint32_t number) { return std::vector<uint32_t>(1 + number % 15, number); }

// Every thread looks for every piece, and puts what is not there.
template <typename Find, typename Put>
size_t wrong_ids(const Find& find, const Put& put) {
  std::atomic<size_t> wrong = 0;
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < 4; ++round)
        for (uint32_t i = 0; i < kPieces; ++i) {
          const uint32_t number = (i * 7 + t * 500) % kPieces;
          uint32_t room[LongPieceTable::kMaxBytes];
          const uint32_t* const end = find(number, room);
          if (!end) {
            put(number, ids_of(number));
          } else if (std::vector<uint32_t>(room, const_cast<uint32_t*>(end)) != ids_of(number)) {
            ++wrong;
          }
        }
    });
  threads.clear();
  return wrong;
}

}  // namespace

TEST_CASE("threads that put and find pieces at once see whole entries only") {
  PieceTable table(12);
  const auto key = [](uint32_t number) { return PieceTable::key_of(std::to_string(number)); };
  CHECK(wrong_ids([&](uint32_t n, uint32_t* out) { return table.copy_ids(key(n), key(n).hash(), out); },
                  [&](uint32_t n, const std::vector<uint32_t>& ids) {
                    table.put(key(n), key(n).hash(), ids);
                  }) == 0);
}

TEST_CASE("threads that put and find long pieces at once see whole entries only") {
  LongPieceTable table(12);
  const auto piece = [](uint32_t number) {
    return std::string(16 + number % 40, '-') + std::to_string(number);
  };
  CHECK(wrong_ids([&](uint32_t n, uint32_t* out) { return table.copy_ids(piece(n), out); },
                  [&](uint32_t n, const std::vector<uint32_t>& ids) { table.put(piece(n), ids); }) == 0);
}

}  // namespace lmemo::tokenizer
