#include "packing/packer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace lmemo {
namespace {

// The amounts of space that some row still has, 1 … row_tokens, as a tree of bitmaps: the smallest one that is at least
// as large as a document is found in a few instructions.
class SpaceSet {
 public:
  explicit SpaceSet(uint32_t largest) {
    size_t bits = size_t{largest} + 1;
    do {
      bits = (bits + 63) / 64;
      levels_.emplace_back(bits, 0);
    } while (bits > 1);
  }

  void insert(uint32_t space) {
    for (std::vector<uint64_t>& level : levels_) {
      level[space / 64] |= uint64_t{1} << (space % 64);
      space /= 64;
    }
  }
  void erase(uint32_t space) {
    for (std::vector<uint64_t>& level : levels_) {
      if ((level[space / 64] &= ~(uint64_t{1} << (space % 64))) != 0) return;
      space /= 64;
    }
  }
  // 0 if there is none: no row is kept with no space.
  uint32_t smallest_from(uint32_t space) const {
    for (size_t level = 0; level < levels_.size(); ++level) {
      const size_t word = space / 64;
      if (word < levels_[level].size()) {
        const uint64_t rest = levels_[level][word] >> (space % 64);
        if (rest != 0) return descend(level, space + static_cast<uint32_t>(std::countr_zero(rest)));
      }
      space = static_cast<uint32_t>(word) + 1;
    }
    return 0;
  }

 private:
  uint32_t descend(size_t level, uint32_t space) const {
    while (level-- > 0) space = space * 64 + static_cast<uint32_t>(std::countr_zero(levels_[level][space]));
    return space;
  }

  std::vector<std::vector<uint64_t>> levels_;
};

constexpr uint32_t kNone = ~uint32_t{0};

// Rows as chains of pieces while they are filled: pieces come in any order, each row remembers its last one.
struct OpenRows {
  std::vector<uint32_t> last_piece;      // Per row.
  std::vector<uint32_t> previous_piece;  // Per piece.
  std::vector<uint32_t> next_with_same;  // Per row: rows with as much space, as a stack.
  std::vector<uint32_t> first_with;      // Per amount of space.

  explicit OpenRows(uint32_t row_tokens) : first_with(size_t{row_tokens} + 1, kNone) {}
};

// Full rows of documents that are longer, then what is left of each; longest first, equal ones in order of their
// documents: a counting sort, since lengths are small numbers.
std::vector<Piece> pieces_by_length(std::span<const uint32_t> lengths, uint32_t row_tokens) {
  std::vector<uint32_t> starts(size_t{row_tokens} + 1, 0);  // By how much is missing to a full row.
  for (const uint32_t length : lengths) {
    if (length <= row_tokens) {
      ++starts[row_tokens - length];
    } else {
      const uint32_t full = (length - 1) / row_tokens;
      starts[0] += full;
      ++starts[row_tokens - (length - full * row_tokens)];
    }
  }
  starts[row_tokens] = 0;  // Documents of no tokens get no piece.
  uint32_t total = 0;
  for (uint32_t& start : starts) start = std::exchange(total, total + start);
  std::vector<Piece> sorted(total);
  for (uint32_t document = 0; document < lengths.size(); ++document) {
    uint32_t offset = 0;
    for (; lengths[document] - offset > row_tokens; offset += row_tokens)
      sorted[starts[0]++] = {document, offset, row_tokens};
    const uint32_t rest = lengths[document] - offset;
    if (rest > 0) sorted[starts[row_tokens - rest]++] = {document, offset, rest};
  }
  return sorted;
}

PackedRows best_fit(std::span<const uint32_t> lengths, uint32_t row_tokens) {
  const std::vector<Piece> sorted = pieces_by_length(lengths, row_tokens);
  OpenRows rows(row_tokens);
  SpaceSet spaces(row_tokens);
  rows.previous_piece.resize(sorted.size(), kNone);
  for (uint32_t number = 0; number < sorted.size(); ++number) {
    const uint32_t length = sorted[number].length;
    uint32_t space = spaces.smallest_from(length);
    uint32_t row;
    if (space == 0) {
      row = static_cast<uint32_t>(rows.last_piece.size());
      rows.last_piece.push_back(kNone);
      rows.next_with_same.push_back(kNone);
      space = row_tokens;
    } else {
      row = rows.first_with[space];
      rows.first_with[space] = rows.next_with_same[row];
      if (rows.first_with[space] == kNone) spaces.erase(space);
    }
    rows.previous_piece[number] = rows.last_piece[row];
    rows.last_piece[row] = number;
    if (const uint32_t left = space - length; left > 0) {
      if (rows.first_with[left] == kNone) spaces.insert(left);
      rows.next_with_same[row] = rows.first_with[left];
      rows.first_with[left] = row;
    }
  }

  PackedRows packed;
  packed.pieces.reserve(sorted.size());
  packed.row_starts.reserve(rows.last_piece.size() + 1);
  for (const uint32_t last : rows.last_piece) {
    const auto begin = static_cast<ptrdiff_t>(packed.pieces.size());
    for (uint32_t number = last; number != kNone; number = rows.previous_piece[number])
      packed.pieces.push_back(sorted[number]);
    std::reverse(packed.pieces.begin() + begin, packed.pieces.end());
    packed.row_starts.push_back(static_cast<uint32_t>(packed.pieces.size()));
  }
  return packed;
}

// `cuts`: concat. Both go through the documents in order with one open row.
PackedRows in_order(std::span<const uint32_t> lengths, uint32_t row_tokens, bool cuts) {
  PackedRows packed;
  uint32_t space = row_tokens;
  const auto end_row = [&] {
    if (space == row_tokens) return;
    packed.row_starts.push_back(static_cast<uint32_t>(packed.pieces.size()));
    space = row_tokens;
  };
  for (uint32_t document = 0; document < lengths.size(); ++document) {
    if (!cuts && lengths[document] > space) end_row();
    for (uint32_t offset = 0; offset < lengths[document];) {
      const uint32_t length = std::min(space, lengths[document] - offset);
      packed.pieces.push_back({document, offset, length});
      offset += length;
      space -= length;
      if (space == 0) {
        packed.row_starts.push_back(static_cast<uint32_t>(packed.pieces.size()));
        space = row_tokens;
      }
    }
  }
  end_row();
  return packed;
}

}  // namespace

std::string_view name_of(PackStrategy strategy) {
  switch (strategy) {
    case PackStrategy::best_fit: return "best_fit";
    case PackStrategy::greedy: return "greedy";
    case PackStrategy::concat: return "concat";
  }
  return "unknown";
}

std::optional<PackStrategy> pack_strategy_named(std::string_view name) {
  for (const PackStrategy strategy : {PackStrategy::best_fit, PackStrategy::greedy, PackStrategy::concat})
    if (name == name_of(strategy)) return strategy;
  return std::nullopt;
}

PackedRows pack(PackStrategy strategy, std::span<const uint32_t> document_lengths, uint32_t row_tokens) {
  assert(row_tokens > 0 && document_lengths.size() < kNone);
  if (strategy == PackStrategy::best_fit) return best_fit(document_lengths, row_tokens);
  return in_order(document_lengths, row_tokens, strategy == PackStrategy::concat);
}

}  // namespace lmemo
