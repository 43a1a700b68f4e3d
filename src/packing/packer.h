// Documents to rows: which piece of which document lies in which row. Knows lengths, not tokens.
//
//   const PackedRows packed = pack(PackStrategy::best_fit, document_lengths, 2048);
//   for (size_t row = 0; row < packed.row_count(); ++row) for (const Piece& piece : packed.row(row)) …
//
// best_fit  No document is cut that fits a row; a longer one becomes full rows and a rest. Documents and rests are
//           placed longest first, each into the fullest row that has room for it (best-fit decreasing).
// greedy    In order: a document that does not fit what is left of the row begins a new one.
// concat    One stream, cut every `row_tokens`: all rows full but the last, documents cut anywhere.
//
// Every token of every document is in exactly one piece, and the result depends on the lengths alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lmemo {

enum class PackStrategy : uint8_t {
  best_fit = 0,
  greedy = 1,
  concat = 2
};  // The numbers are written to disk.

std::string_view name_of(PackStrategy strategy);
std::optional<PackStrategy> pack_strategy_named(std::string_view name);

struct Piece {
  uint32_t document = 0;
  uint32_t offset = 0;  // Of its first token in the document.
  uint32_t length = 0;  // Never 0.
  bool operator==(const Piece&) const = default;
};

struct PackedRows {
  std::vector<Piece> pieces;               // Row by row.
  std::vector<uint32_t> row_starts = {0};  // Row i has pieces [row_starts[i], row_starts[i + 1]).

  size_t row_count() const { return row_starts.size() - 1; }
  std::span<const Piece> row(size_t number) const {
    return std::span(pieces).subspan(row_starts[number], row_starts[number + 1] - row_starts[number]);
  }
};

// Documents of length 0 get no piece. Requires: row_tokens > 0, and fewer than 2^32 documents and tokens in all.
PackedRows pack(PackStrategy strategy, std::span<const uint32_t> document_lengths, uint32_t row_tokens);

}  // namespace lmemo
