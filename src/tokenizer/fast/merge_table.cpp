#include "tokenizer/fast/merge_table.h"

namespace lmemo::tokenizer {

MergeTable::MergeTable(std::span<const Merge> merges, std::span<const EndBytes> ends, const std::vector<bool>& is_byte) {
  const auto border_of = [&](const Merge& merge) -> Border& {
    return borders_[static_cast<size_t>(ends[merge.left].last) << 8 | ends[merge.right].first];
  };
  for (const Merge& merge : merges) ++border_of(merge).slot_count;
  size_t start = 0;
  for (Border& border : borders_) {
    if (border.slot_count == 0) continue;
    border.start = static_cast<uint32_t>(start);
    border.slot_count += border.slot_count / 2 + 1;
    start += border.slot_count;
  }
  merges_.assign(start, {~uint32_t{0}, ~uint32_t{0}, 0, kNever});
  for (const Merge& merge : merges) {
    Border& border = border_of(merge);
    uint32_t slot = first_slot(merge.left, merge.right, border);
    while (merges_[slot].rank != kNever) slot = next_slot(slot, border);
    merges_[slot] = merge;
    if (!is_byte[merge.left] || !is_byte[merge.right]) continue;
    border.byte_rank = merge.rank;
    border.byte_id = merge.id;
  }
}

}  // namespace lmemo::tokenizer
