// A chunk set made of numbers: for tests of what reads one.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "lmemo/chunks.h"

namespace lmemo::test {

class RowsInMemory final : public ChunkSet {
 public:
  RowsInMemory(uint64_t rows, uint32_t sequence_length, uint64_t block_rows)
      : rows_(rows), block_rows_(block_rows) {
    parameters_.sequence_length = sequence_length;
    parameters_.vocab_size = (rows + 1) * 1000 <= 1 << 16 ? 1 << 16 : 1 << 24;
  }

  // Row r has these pieces; token i of it is r × 1000 + i.
  std::vector<uint32_t> lengths_of(uint64_t row) const {
    std::mt19937_64 random(row);
    std::vector<uint32_t> lengths;
    uint64_t left = sequence_length() - (row % 3 == 0 ? 0 : random() % 5);
    while (left > 0) {
      lengths.push_back(static_cast<uint32_t>(1 + random() % left));
      left -= lengths.back();
    }
    return lengths;
  }

  const ChunkParameters& parameters() const override { return parameters_; }
  uint64_t row_count() const override { return rows_; }
  uint64_t token_count() const override { return 0; }
  uint64_t block_count() const override { return (rows_ + block_rows_ - 1) / block_rows_; }
  uint64_t planned_chunks() const override { return 1; }
  std::span<const ChunkSummary> chunks() const override { return {}; }
  std::span<const uint64_t> gaps() const override { return {}; }
  Digest identity() const override { return {}; }
  Digest identity_of_first(uint64_t) const override { return {}; }
  uint64_t block_of(uint64_t row) const override { return row / block_rows_; }
  uint64_t first_row_of(uint64_t block) const override { return std::min(block * block_rows_, rows_); }

  Status read_block(uint64_t block, ChunkRows& rows) const override {
    ++blocks_read;
    if (block == broken_block) return Error{ErrorCode::corruption, "block " + std::to_string(block)};
    rows.first_row = first_row_of(block);
    rows.tokens.clear();
    rows.pieces.clear();
    rows.row_tokens.assign(1, 0);
    rows.row_pieces.assign(1, 0);
    for (uint64_t row = rows.first_row; row < first_row_of(block + 1); ++row) {
      uint32_t i = 0;
      for (const uint32_t length : lengths_of(row)) {
        rows.pieces.push_back({length, 0, 0});
        for (uint32_t k = 0; k < length; ++k) rows.tokens.push_back(static_cast<uint32_t>(row * 1000 + i++));
      }
      rows.row_tokens.push_back(static_cast<uint32_t>(rows.tokens.size()));
      rows.row_pieces.push_back(static_cast<uint32_t>(rows.pieces.size()));
    }
    return {};
  }

  mutable std::atomic<uint64_t> blocks_read = 0;
  std::atomic<uint64_t> broken_block = ~uint64_t{0};

 private:
  ChunkParameters parameters_;
  const uint64_t rows_;
  const uint64_t block_rows_;
};

}  // namespace lmemo::test
