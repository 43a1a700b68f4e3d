#include "lmemo/row_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "support/test_scale.h"

namespace lmemo {
namespace {

using Rows = std::vector<uint64_t>;

RowOrder order_of(const Rows& chunk_rows, const RowOrderOptions& options, uint64_t epoch = 0,
                  const std::vector<RowGrowth>& growths = {}) {
  Result<RowOrder> order = RowOrder::make(chunk_rows, options, epoch, growths);
  REQUIRE(order.ok());
  return std::move(order).value();
}

Rows all_of(const RowOrder& order) {
  Rows rows(order.rows());
  if (!rows.empty()) order.rows_at(0, 1, rows);
  return rows;
}

bool is_every_row_once(Rows rows) {
  std::sort(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != i) return false;
  }
  return true;
}

TEST_CASE("every row comes once, whatever the chunks, blocks, windows and lanes") {
  std::mt19937_64 random(1);
  for (int round = 0; round < test::scaled(300); ++round) {
    Rows chunk_rows(random() % 6);
    for (uint64_t& rows : chunk_rows) rows = random() % 60;
    for (const RowOrderKind kind : {RowOrderKind::sequential, RowOrderKind::windows, RowOrderKind::exact}) {
      const RowOrderOptions options{kind, random(), 1 + random() % 9, 1 + random() % 7, 1 + random() % 9};
      const RowOrder order = order_of(chunk_rows, options, random() % 4);
      CHECK(order.rows() == std::accumulate(chunk_rows.begin(), chunk_rows.end(), uint64_t{0}));
      CHECK(is_every_row_once(all_of(order)));
    }
  }
}

TEST_CASE("sequential is as the rows lie; others differ by seed and by epoch") {
  const Rows chunk_rows{500, 300};
  CHECK(all_of(order_of(chunk_rows, {RowOrderKind::sequential}))[17] == 17);
  for (const RowOrderKind kind : {RowOrderKind::windows, RowOrderKind::exact}) {
    const Rows one = all_of(order_of(chunk_rows, {kind, 1}));
    CHECK(one == all_of(order_of(chunk_rows, {kind, 1})));
    CHECK(one != all_of(order_of(chunk_rows, {kind, 2})));
    CHECK(one != all_of(order_of(chunk_rows, {kind, 1}, 1)));
  }
}

TEST_CASE("a window touches its blocks only, and a rank only its share of them") {
  RowOrderOptions options{RowOrderKind::windows, 3, 16, 8, 4};
  const RowOrder order = order_of({1024, 512}, options);
  const uint64_t window_rows = 16 * 8;
  for (uint64_t window = 0; window < order.rows() / window_rows; ++window) {
    std::set<uint64_t> blocks;
    std::map<uint64_t, std::set<uint64_t>> blocks_of_rank;
    for (uint64_t i = 0; i < window_rows; ++i) {
      const uint64_t block = order.row_at(window * window_rows + i) / 16;
      blocks.insert(block);
      blocks_of_rank[i % 2].insert(block);
    }
    CHECK(blocks.size() == 8);
    CHECK(blocks_of_rank[0].size() == 4);
    CHECK(blocks_of_rank[1].size() == 4);
  }
}

TEST_CASE("ranks in any number, changed at any moment, read every row once") {
  std::mt19937_64 random(2);
  for (int round = 0; round < test::scaled(100); ++round) {
    const RowOrder order =
        order_of({random() % 300, 1 + random() % 300}, {RowOrderKind::windows, random(), 8, 4, 4});
    Rows read;
    uint64_t consumed = 0;
    while (consumed < order.rows()) {
      const uint64_t ranks = 1 + random() % 8;
      const uint64_t steps = 1 + random() % 20;
      for (uint64_t rank = 0; rank < ranks; ++rank) {
        for (uint64_t step = 0; step < steps; ++step) {
          const uint64_t place = consumed + step * ranks + rank;
          if (place < order.rows()) read.push_back(order.row_at(place));
        }
      }
      consumed += steps * ranks;
    }
    CHECK(read.size() == order.rows());
    CHECK(is_every_row_once(read));
  }
}

TEST_CASE("a set that grows within the epoch repeats and skips nothing") {
  std::mt19937_64 random(3);
  for (int round = 0; round < test::scaled(200); ++round) {
    const RowOrderOptions options{random() % 4 == 0 ? RowOrderKind::exact : RowOrderKind::windows, random(),
                                  1 + random() % 8, 1 + random() % 8, 1 + random() % 8};
    Rows chunk_rows{random() % 100};
    std::vector<RowGrowth> growths;
    Rows read;
    for (int growth = 0; growth < 4; ++growth) {
      const RowOrder order = order_of(chunk_rows, options, 5, growths);
      // What was read so far stands in the new order as well: its prefix is the past.
      for (size_t i = 0; i < read.size(); ++i) CHECK(order.row_at(i) == read[i]);
      const uint64_t until = read.size() + random() % (order.rows() - read.size() + 1);
      while (read.size() < until) read.push_back(order.row_at(read.size()));
      growths.push_back({chunk_rows.size(), read.size()});
      for (uint64_t more = random() % 3; more > 0; --more) chunk_rows.push_back(random() % 100);
    }
    const Rows all = all_of(order_of(chunk_rows, options, 5, growths));
    CHECK(is_every_row_once(all));
    CHECK(std::equal(read.begin(), read.end(), all.begin()));
  }
}

TEST_CASE("new rows are spread evenly over what is left of the epoch") {
  const RowOrder order = order_of({1000, 3000}, {RowOrderKind::windows, 1, 8, 8, 4}, 0, {{1, 500}});
  for (uint64_t start = 500; start + 70 <= 4000; start += 70) {
    int old_rows = 0;
    for (uint64_t i = 0; i < 70; ++i) old_rows += order.row_at(start + i) < 1000;
    CHECK(old_rows >= 9);  // 500 of 3,500: one in seven.
    CHECK(old_rows <= 11);
  }
}

TEST_CASE("some rows of each chunk can be read, and no others") {
  const Rows chunk_rows{8, 0, 19}, starts{2, 10, 14};
  Rows wanted;
  for (size_t chunk = 0; chunk < 3; ++chunk) {
    for (uint64_t i = 0; i < chunk_rows[chunk]; ++i) wanted.push_back(starts[chunk] + i);
  }
  for (const RowOrderKind kind : {RowOrderKind::sequential, RowOrderKind::windows, RowOrderKind::exact}) {
    const Result<RowOrder> order =
        RowOrder::make(chunk_rows, {kind, 5, 4, 2, 2}, 0, std::vector<RowGrowth>{{1, 3}}, starts);
    REQUIRE(order.ok());
    Rows read = all_of(*order);
    CHECK((kind != RowOrderKind::sequential || read[0] == 2));
    std::sort(read.begin(), read.end());
    CHECK(read == wanted);
  }
}

TEST_CASE("what cannot be is refused in words") {
  const Rows chunk_rows{10, 10};
  const auto refused = [&](const RowOrderOptions& options, const std::vector<RowGrowth>& growths) {
    const Result<RowOrder> order = RowOrder::make(chunk_rows, options, 0, growths);
    return !order.ok() && order.error().code == ErrorCode::invalid_argument;
  };
  CHECK(refused({RowOrderKind::windows, 0, 0, 1, 1}, {}));
  CHECK(refused({RowOrderKind::windows, 0, 1, 0, 1}, {}));
  CHECK(refused({RowOrderKind::windows, 0, 1, 1, 0}, {}));
  CHECK(refused({}, {{3, 0}}));
  CHECK(refused({}, {{1, 11}}));
  CHECK(refused({}, {{1, 9}, {1, 8}}));
  CHECK(refused({}, {{2, 9}, {1, 10}}));
  CHECK_FALSE(refused({}, {{1, 9}, {2, 9}}));
  CHECK_FALSE(row_order_kind_of("random").ok());
  for (const char* name : {"sequential", "windows", "exact"})
    CHECK(name_of(*row_order_kind_of(name)) == name);
}

TEST_CASE("an order is the same on every machine and in every version") {
  // Saved states of readers depend on these numbers. They may never change.
  const RowOrder order = order_of({40, 25, 30}, {RowOrderKind::windows, 11, 8, 4, 2}, 3, {{2, 20}});
  Rows first(12);
  order.rows_at(15, 1, first);
  CHECK(first == Rows{18, 7, 42, 2, 19, 69, 5, 87, 17, 56, 72, 16});
}

}  // namespace
}  // namespace lmemo
