#include "lmemo/row_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>

#include "base/keyed_permutation.h"

namespace lmemo {
namespace {

// What a key is for. Changing these changes every order: a resumed epoch would repeat rows.
enum KeyUse : uint64_t { kOrderOfRows = 1, kOrderOfBlocks = 2, kOrderInLane = 3 };

uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t product_over(uint64_t a, uint64_t b, uint64_t divisor) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b / divisor);
}

// `firsts`: what each chunk begins with, and the end.
size_t chunk_holding(const std::vector<uint64_t>& firsts, uint64_t number) {
  return static_cast<size_t>(std::upper_bound(firsts.begin(), firsts.end(), number) - firsts.begin()) - 1;
}

Error wrong(std::string what) { return {ErrorCode::invalid_argument, "row order: " + std::move(what)}; }

}  // namespace

std::string_view name_of(RowOrderKind kind) {
  switch (kind) {
    case RowOrderKind::sequential: return "sequential";
    case RowOrderKind::windows: return "windows";
    case RowOrderKind::exact: return "exact";
  }
  return "?";
}

Result<RowOrderKind> row_order_kind_of(std::string_view name) {
  for (const RowOrderKind kind : {RowOrderKind::sequential, RowOrderKind::windows, RowOrderKind::exact}) {
    if (name == name_of(kind)) return kind;
  }
  return wrong("there is no order '" + std::string(name) + "'; expected sequential, windows or exact");
}

Result<RowOrder> RowOrder::make(std::span<const uint64_t> chunk_rows, const RowOrderOptions& options,
                                uint64_t epoch, std::span<const RowGrowth> growths,
                                std::span<const uint64_t> chunk_starts) {
  if (options.block_rows == 0 || options.window_blocks == 0 || options.lanes == 0) {
    return wrong("block_rows, window_blocks and lanes must be at least 1");
  }
  std::vector<uint64_t> starts(chunk_starts.begin(), chunk_starts.end());
  if (starts.empty()) {
    starts.resize(chunk_rows.size());
    std::exclusive_scan(chunk_rows.begin(), chunk_rows.end(), starts.begin(), uint64_t{0});
  }
  if (starts.size() != chunk_rows.size()) return wrong("one start for each chunk is expected");

  RowOrder order;
  uint64_t rows = 0;
  const auto add_part = [&](size_t first_chunk, size_t last_chunk) {
    const uint64_t key = mixed_key({options.seed, epoch, order.parts_.size()});
    const size_t count = last_chunk - first_chunk;
    order.parts_.push_back(make_part(chunk_rows.subspan(first_chunk, count),
                                     std::span(starts).subspan(first_chunk, count), key, options));
    rows += order.parts_.back().rows;
  };

  size_t chunks = 0;
  uint64_t consumed = 0;
  for (const RowGrowth& growth : growths) {
    if (growth.chunks_before < chunks || growth.chunks_before > chunk_rows.size()) {
      return wrong("the set has " + std::to_string(chunk_rows.size()) + " chunks, but had " +
                   std::to_string(growth.chunks_before) +
                   " before it grew; it is not the set the state was saved for");
    }
    add_part(chunks, growth.chunks_before);
    if (order.levels_.empty()) {
      order.levels_.push_back({0, 0, rows});
    } else {
      order.levels_.push_back({consumed, order.levels_.back().rows - consumed, rows});
    }
    if (growth.consumed < consumed || growth.consumed > rows) {
      return wrong("of " + std::to_string(rows) + " rows, " + std::to_string(growth.consumed) +
                   " cannot have been read when the set grew");
    }
    chunks = growth.chunks_before;
    consumed = growth.consumed;
  }
  add_part(chunks, chunk_rows.size());
  order.levels_.push_back({consumed, order.levels_.empty() ? 0 : order.levels_.back().rows - consumed, rows});
  return order;
}

uint64_t RowOrder::rows() const { return levels_.back().rows; }

uint64_t RowOrder::row_at(uint64_t place) const { return row_at(place, levels_.size() - 1); }

void RowOrder::rows_at(uint64_t first, uint64_t stride, std::span<uint64_t> rows) const {
  for (uint64_t& row : rows) {
    row = row_at(first);
    first += stride;
  }
}

uint64_t RowOrder::row_at(uint64_t place, size_t level_number) const {
  const Level& level = levels_[level_number];
  const Part& part = parts_[level_number];
  assert(place < level.rows);
  if (level_number == 0) return part.row_at(place);
  if (place < level.from) return row_at(place, level_number - 1);

  // Of any n places from here on, n × old / (old + new) are old ones, rounded down.
  const uint64_t n = place - level.from;
  const uint64_t both = level.old_rows + part.rows;
  const uint64_t old_before = product_over(n, level.old_rows, both);
  if (product_over(n + 1, level.old_rows, both) > old_before)
    return row_at(level.from + old_before, level_number - 1);
  return part.row_at(n - old_before);
}

RowOrder::Part RowOrder::make_part(std::span<const uint64_t> chunk_rows,
                                   std::span<const uint64_t> chunk_starts, uint64_t key,
                                   const RowOrderOptions& options) {
  Part part;
  part.options = options;
  part.key = key;
  part.chunk_first_row.assign(chunk_starts.begin(), chunk_starts.end());
  part.chunk_first_place.push_back(0);
  for (const uint64_t rows : chunk_rows)
    part.chunk_first_place.push_back(part.chunk_first_place.back() + rows);
  part.rows = part.chunk_first_place.back();
  if (options.kind != RowOrderKind::windows || part.rows == 0) return part;

  const uint64_t block_rows = options.block_rows;
  part.chunk_first_block.push_back(0);
  for (const uint64_t rows : chunk_rows) {
    part.chunk_first_block.push_back(part.chunk_first_block.back() + ceil_div(rows, block_rows));
  }
  part.blocks = part.chunk_first_block.back();

  const KeyedPermutation order_of_blocks(part.blocks, mixed_key({key, kOrderOfBlocks}));
  for (size_t chunk = 0; chunk < chunk_rows.size(); ++chunk) {
    const uint64_t left_over = chunk_rows[chunk] % block_rows;
    if (left_over == 0) continue;
    const uint64_t last_block = part.chunk_first_block[chunk + 1] - 1;
    part.short_blocks.push_back({order_of_blocks.place_of(last_block), block_rows - left_over});
  }
  std::sort(part.short_blocks.begin(), part.short_blocks.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  uint64_t missing = 0;
  for (Part::ShortBlock& block : part.short_blocks)
    block.missing_rows_up_to_here = missing += block.missing_rows_up_to_here;

  for (uint64_t slot = 0; slot < part.blocks; slot += options.window_blocks) {
    part.window_start.push_back(part.slot_start(slot));
  }
  part.window_start.push_back(part.rows);
  return part;
}

uint64_t RowOrder::Part::row_at(uint64_t place) const {
  if (options.kind == RowOrderKind::windows) return windowed_row_at(place);
  if (options.kind == RowOrderKind::exact)
    place = KeyedPermutation(rows, mixed_key({key, kOrderOfRows}))(place);
  const size_t chunk = chunk_holding(chunk_first_place, place);
  return chunk_first_row[chunk] + (place - chunk_first_place[chunk]);
}

// The rows in all slots before this one.
uint64_t RowOrder::Part::slot_start(uint64_t slot) const {
  const auto after =
      std::lower_bound(short_blocks.begin(), short_blocks.end(), slot,
                       [](const ShortBlock& block, uint64_t wanted) { return block.slot < wanted; });
  const uint64_t missing = after == short_blocks.begin() ? 0 : std::prev(after)->missing_rows_up_to_here;
  return slot * options.block_rows - missing;
}

uint64_t RowOrder::Part::windowed_row_at(uint64_t place) const {
  // Which window, which lane, and which row of that lane.
  const auto next_window = std::upper_bound(window_start.begin(), window_start.end(), place);
  const uint64_t window = static_cast<uint64_t>(next_window - window_start.begin()) - 1;
  const uint64_t start = window_start[window];
  const uint64_t window_rows = *next_window - start;
  const uint64_t lane = (place - start) % options.lanes;
  const uint64_t fewest_in_lane = window_rows / options.lanes;
  const uint64_t longer_lanes = window_rows % options.lanes;
  const uint64_t lane_start = lane * fewest_in_lane + std::min(lane, longer_lanes);
  const KeyedPermutation order_in_lane(fewest_in_lane + (lane < longer_lanes ? 1 : 0),
                                       mixed_key({key, kOrderInLane, window, lane}));
  const uint64_t target = start + lane_start + order_in_lane((place - start) / options.lanes);

  // Which slot: short blocks before it can only make it a later one.
  uint64_t slot = window * options.window_blocks + (target - start) / options.block_rows;
  uint64_t at = slot_start(slot);
  for (uint64_t next = slot_start(slot + 1); next <= target; next = slot_start(slot + 1)) {
    ++slot;
    at = next;
  }

  const uint64_t block = KeyedPermutation(blocks, mixed_key({key, kOrderOfBlocks}))(slot);
  const size_t chunk = chunk_holding(chunk_first_block, block);
  return chunk_first_row[chunk] + (block - chunk_first_block[chunk]) * options.block_rows + (target - at);
}

}  // namespace lmemo
