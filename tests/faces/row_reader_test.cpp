#include "lmemo/row_reader.h"

#include <doctest/doctest.h>

#include "rows_in_memory.h"

namespace lmemo {
namespace {

using test::RowsInMemory;
constexpr uint32_t kLength = 16;

template <typename Number>
void check_row(const RowsInMemory& set, uint64_t row, const Number* ids, const Number* labels,
               const Number* positions, bool masks_boundaries) {
  size_t i = 0;
  for (const uint32_t length : set.lengths_of(row)) {
    for (uint32_t k = 0; k < length; ++k, ++i) {
      const Number token = static_cast<Number>(row * 1000 + i);
      CHECK(ids[i] == token);
      CHECK(labels[i] == (masks_boundaries && k == 0 && i > 0 ? -100 : token));
      CHECK(positions[i] == static_cast<Number>(k));
    }
  }
  for (; i < kLength; ++i) {
    CHECK(ids[i] == 7);
    CHECK(labels[i] == -100);
    CHECK(positions[i] == 0);
  }
}

TEST_CASE_TEMPLATE("columns hold tokens, labels and positions, padded at the end", Number, int32_t, int64_t) {
  const auto set = std::make_shared<RowsInMemory>(50, kLength, 8);
  RowReader reader(set, {});
  const std::vector<uint64_t> rows{3, 49, 0, 3, 17, 16, 15};
  for (const bool masks_boundaries : {false, true}) {
    std::vector<Number> ids(rows.size() * kLength), labels(ids.size()), positions(ids.size());
    RowBoundaries boundaries;
    REQUIRE(reader
                .read<Number>(rows, {ids.data(), labels.data(), positions.data(), 7, masks_boundaries},
                              boundaries)
                .ok());
    REQUIRE(boundaries.row_pieces.size() == rows.size() + 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t at = i * kLength;
      check_row(*set, rows[i], &ids[at], &labels[at], &positions[at], masks_boundaries);
      CHECK(std::vector<uint32_t>(boundaries.lengths.begin() + boundaries.row_pieces[i],
                                  boundaries.lengths.begin() + boundaries.row_pieces[i + 1]) ==
            set->lengths_of(rows[i]));
    }
  }
}

TEST_CASE("a block is decoded once as long as it is kept, and the limit holds") {
  const auto set = std::make_shared<RowsInMemory>(80, kLength, 8);
  RowBoundaries boundaries;
  std::vector<int32_t> ids(80 * kLength);
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < 80; ++i) rows.push_back(i * 8 % 79 % 80);

  RowReader roomy(set, {});
  REQUIRE(roomy.read<int32_t>(rows, {.input_ids = ids.data()}, boundaries).ok());
  CHECK(set->blocks_read == 10);
  CHECK(roomy.counters().blocks_decoded == 10);

  set->blocks_read = 0;
  RowReader tight(set, {.max_bytes = 1});
  REQUIRE(tight.read<int32_t>(rows, {.input_ids = ids.data()}, boundaries).ok());
  CHECK(set->blocks_read > 60);
}

TEST_CASE("a damaged block is an error for who asks for it, and for nobody else") {
  const auto set = std::make_shared<RowsInMemory>(80, kLength, 8);
  set->broken_block = 2;
  RowReader reader(set, {.threads = 1});
  RowBoundaries boundaries;
  std::vector<int64_t> ids(2 * kLength);
  reader.expect(std::vector<uint64_t>{17, 30});
  CHECK(reader.read<int64_t>(std::vector<uint64_t>{1, 30}, {.input_ids = ids.data()}, boundaries).ok());
  const Status status =
      reader.read<int64_t>(std::vector<uint64_t>{1, 17}, {.input_ids = ids.data()}, boundaries);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::corruption);
  set->broken_block = 99;
  CHECK(reader.read<int64_t>(std::vector<uint64_t>{17}, {.input_ids = ids.data()}, boundaries).ok());
}

TEST_CASE("a row that is not there is refused") {
  RowReader reader(std::make_shared<RowsInMemory>(10, kLength, 8), {});
  RowBoundaries boundaries;
  CHECK_FALSE(reader.read<int32_t>(std::vector<uint64_t>{10}, {}, boundaries).ok());
  CHECK(reader.read<int32_t>(std::vector<uint64_t>{9}, {}, boundaries).ok());
}

}  // namespace
}  // namespace lmemo
