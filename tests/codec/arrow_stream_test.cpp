#include "codec/arrow_stream.h"

#include <doctest/doctest.h>

#include <string>

using namespace lmemo;

namespace {

struct Written {
  std::string bytes;
  ArrowStreamWriter writer;
  explicit Written(std::vector<ArrowColumn> columns)
      : writer(std::move(columns), [this](Bytes more) -> Status {
          bytes += text_of(more);
          return {};
        }) {}
};

const std::vector<int32_t> kOffsets = {0, 2, 3};
const std::vector<int32_t> kIds = {5, 6, 7};

}  // namespace

// That pyarrow reads them back is shown by arrow_stream_oracle_test.py.
TEST_CASE("the same rows give the same bytes, counted, in multiples of 8") {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    Written written({{"ids", ArrowType::int32, true}});
    const ArrowColumnData data[] = {{kOffsets, std::as_bytes(std::span(kIds))}};
    REQUIRE(written.writer.begin().ok());
    REQUIRE(written.writer.batch(2, data).ok());
    REQUIRE(written.writer.end().ok());
    CHECK(written.bytes.size() == written.writer.bytes_written());
    CHECK(written.bytes.size() % 8 == 0);
    CHECK(written.bytes.ends_with(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8)));
    if (round == 0) first = written.bytes;
    CHECK(first == written.bytes);
  }
}

TEST_CASE("columns that do not fit together are refused") {
  Written written({{"ids", ArrowType::int32, true}, {"length", ArrowType::int64, false}});
  const std::vector<int64_t> lengths = {2, 1};
  const std::vector<int32_t> falling = {0, 4, 3};
  const auto ids = std::as_bytes(std::span(kIds));
  const auto good = std::as_bytes(std::span(lengths));
  const auto accepts = [&](uint64_t rows, ArrowColumnData a, ArrowColumnData b) {
    const ArrowColumnData data[] = {a, b};
    return written.writer.batch(rows, data).ok();
  };
  CHECK(accepts(2, {kOffsets, ids}, {{}, good}));
  CHECK_FALSE(accepts(3, {kOffsets, ids}, {{}, good}));
  CHECK_FALSE(accepts(2, {kOffsets, ids.first(8)}, {{}, good}));
  CHECK_FALSE(accepts(2, {kOffsets, ids.first(9)}, {{}, good}));
  CHECK_FALSE(accepts(2, {falling, ids}, {{}, good}));
  CHECK_FALSE(accepts(2, {kOffsets, ids}, {{}, good.first(8)}));
  CHECK_FALSE(accepts(2, {kOffsets, ids}, {kOffsets, good}));
  CHECK_FALSE(written.writer.batch(2, {}).ok());
}
