#include "faces/dataset/row_pack.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace lmemo::dataset {
namespace {

struct Row {
  std::vector<uint32_t> ids, runs;
};

std::vector<Row> sample_rows(uint32_t largest_id) {
  return {{{1, 2, 3}, {1, 2}}, {{}, {}}, {{largest_id}, {0, 1}}, {{7, 8, 9, 10, 11}, {2, 1, 2}}};
}

std::string pack_of(const std::vector<Row>& rows) {
  RowPackWriter writer;
  for (size_t row = 0; row < rows.size(); ++row)
    writer.add(sha256(bytes_of(std::to_string(row))), rows[row].ids, rows[row].runs);
  return writer.finish();
}

// Reads all that a pack claims to have; what it has fits into its bytes, and a row's runs into the row.
void look_at_all(const RowPack& pack, size_t byte_count) {
  size_t id_count = 0, run_count = 0;
  for (size_t row = 0; row < pack.size(); ++row) {
    std::vector<uint32_t> ids, runs;
    (void)pack.digest(row);
    pack.read(row, ids, runs);
    id_count += ids.size();
    run_count += runs.size();
    CHECK(std::accumulate(runs.begin(), runs.end(), uint64_t{0}) == ids.size());
  }
  CHECK(12 + 40 * pack.size() + 4 * run_count + 2 * id_count <= byte_count);
}

// Of exactly its size and nowhere else, so that a sanitizer sees who reads past the end.
Result<RowPack> parse(const std::vector<char>& bytes) {
  return RowPack::parse(std::as_bytes(std::span(bytes)));
}

}  // namespace

TEST_CASE("a pack gives the rows that were added, at every width of ids") {
  for (const uint32_t largest : {500u, 70'000u, 20'000'000u}) {
    const std::vector<Row> rows = sample_rows(largest);
    const std::string bytes = pack_of(rows);
    const Result<RowPack> pack = RowPack::parse(bytes_of(bytes));
    REQUIRE(pack.ok());
    REQUIRE(pack->size() == rows.size());
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<uint32_t> ids, runs;
      pack->read(row, ids, runs);
      CHECK(ids == rows[row].ids);
      CHECK(runs == rows[row].runs);
      CHECK(pack->digest(row) == sha256(bytes_of(std::to_string(row))));
    }
  }
}

TEST_CASE("a pack that is cut anywhere, or longer than it was, is refused") {
  const std::string bytes = pack_of(sample_rows(500));
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(parse({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}).ok());
  }
  std::vector<char> longer(bytes.begin(), bytes.end());
  longer.push_back('\0');
  CHECK_FALSE(parse(longer).ok());
}

TEST_CASE("a pack with any byte changed is refused, or has lengths that fit") {
  for (const uint32_t largest : {500u, 70'000u, 20'000'000u}) {
    const std::string bytes = pack_of(sample_rows(largest));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int change = 1; change < 256; ++change) {
        std::vector<char> changed(bytes.begin(), bytes.end());
        changed[at] = static_cast<char>(changed[at] ^ change);
        const Result<RowPack> pack = parse(changed);
        if (pack.ok()) look_at_all(*pack, changed.size());
      }
    }
  }
}

TEST_CASE("lengths that wrap around are refused") {
  // Two rows whose numbers of ids are 2^32 - 1 and 1: their sum is 0 in 32 bits.
  std::string bytes = pack_of({{{}, {}}, {{}, {}}});
  const size_t counts_at = 12 + 2 * 32;
  for (size_t i = 0; i < 4; ++i) bytes[counts_at + i] = '\xff';
  bytes[counts_at + 4] = 1;
  CHECK_FALSE(RowPack::parse(bytes_of(bytes)).ok());
  // So many rows that their table has no size.
  bytes = pack_of({{{1}, {1}}});
  for (size_t i = 8; i < 12; ++i) bytes[i] = '\xff';
  CHECK_FALSE(RowPack::parse(bytes_of(bytes)).ok());
}

}  // namespace lmemo::dataset
