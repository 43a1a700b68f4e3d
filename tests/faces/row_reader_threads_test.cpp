#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "lmemo/row_reader.h"
#include "rows_in_memory.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

TEST_CASE("threads that read and threads that decode ahead agree on every token") {
  const auto set = std::make_shared<test::RowsInMemory>(2000, 16, 8);
  for (const uint64_t max_bytes : {uint64_t{1}, uint64_t{20'000}, uint64_t{1} << 30}) {
    RowReader reader(set, {.max_bytes = max_bytes, .threads = 2});
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        RowBoundaries boundaries;
        std::vector<int64_t> ids(8 * 16);
        for (int round = 0; round < test::scaled(300); ++round) {
          std::vector<uint64_t> rows(8), soon(8);
          for (uint64_t& row : rows) row = random() % set->row_count();
          for (uint64_t& row : soon) row = random() % set->row_count();
          reader.expect(soon);
          if (!reader.read<int64_t>(rows, {.input_ids = ids.data()}, boundaries).ok()) ++wrong;
          for (size_t i = 0; i < 8; ++i) wrong += ids[i * 16] != static_cast<int64_t>(rows[i] * 1000);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("what is expected is decoded by the time it is asked for, and once") {
  const auto set = std::make_shared<test::RowsInMemory>(800, 16, 8);
  RowReader reader(set, {.threads = 1});
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < 800; row += 4) rows.push_back(row);
  reader.expect(rows);
  while (reader.counters().blocks_decoded_ahead < 100) std::this_thread::yield();
  RowBoundaries boundaries;
  CHECK(reader.read<int32_t>(rows, {}, boundaries).ok());
  CHECK(set->blocks_read == 100);
}

TEST_CASE("a paused reader decodes nothing ahead, and reads on demand all the same") {
  const auto set = std::make_shared<test::RowsInMemory>(8000, 16, 8);
  RowReader reader(set, {.threads = 2});
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < 8000; ++row) rows.push_back(row);
  reader.expect(rows);
  reader.pause();
  const uint64_t read_before = set->blocks_read;
  RowBoundaries boundaries;
  CHECK(reader.read<int32_t>(std::vector<uint64_t>{7999}, {}, boundaries).ok());
  CHECK(set->blocks_read <= read_before + 1);
  reader.go_on();
  while (reader.counters().blocks_decoded < 1000) std::this_thread::yield();
}

}  // namespace
}  // namespace lmemo
