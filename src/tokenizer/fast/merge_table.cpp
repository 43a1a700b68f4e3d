#include "tokenizer/fast/merge_table.h"

namespace lmemo::tokenizer {

MergeTable::MergeTable(std::span<const Merge> merges, std::span<const EndBytes> ends,
                       const std::vector<bool>& is_byte) {
  const auto border_of = [&](const Merge& merge) -> Border& {
    return borders_[static_cast<size_t>(ends[merge.left].last) << 8 | ends[merge.right].first];
  };
  for (const Merge& merge : merges) ++border_of(merge).line_count;
  uint32_t lines = 1;
  for (Border& border : borders_) {
    if (border.line_count == 0) continue;
    border.first_line = lines;
    // Five merges in two lines, so that few go on in the next one.
    border.line_count = border.line_count <= kMerges ? 1 : (border.line_count * 2 + 4) / 5;
    lines += border.line_count;
  }
  lines_.resize(lines);
  for (const Merge& merge : merges) {
    Border& border = border_of(merge);
    for (uint32_t number = line_of(merge.left, merge.right, border);; number = next_line(number, border)) {
      Line& line = lines_[number];
      size_t place = 0;
      while (place < kMerges && line.left[place] != kNoToken) ++place;
      if (place == kMerges) {
        line.id[kMerges - 1] |= kSpilled;
        continue;
      }
      line.left[place] = merge.left;
      line.right[place] = merge.right;
      line.rank[place] = merge.rank;
      line.id[place] = merge.id;
      break;
    }
    if (!is_byte[merge.left] || !is_byte[merge.right]) continue;
    border.byte_rank = merge.rank;
    border.byte_id = merge.id;
  }
}

}  // namespace lmemo::tokenizer
