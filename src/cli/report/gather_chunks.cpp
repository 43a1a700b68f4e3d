// The chunks of a set for a report: thousands of them become a map of cells and two histograms.
#include <algorithm>
#include <bit>

#include "cli/commands/chunks_support.h"
#include "cli/report/gather_report.h"
#include "lmemo/row_reader.h"

namespace lmemo::cli {
namespace {

constexpr size_t kMostCells = 1200;
constexpr uint64_t kBins = 20;
constexpr uint64_t kSampledRows = 512;

using chunks::ChunkState;

CellState cell_state(ChunkState state) {
  switch (state) {
    case ChunkState::sound: return CellState::present;
    case ChunkState::missing: return CellState::missing;
    case ChunkState::damaged: return CellState::damaged;
    case ChunkState::stale: return CellState::stale;
  }
  return CellState::present;
}

// What catches the eye first: damage, then what is out of date, then gaps.
int weight_of(CellState state) {
  constexpr int kWeights[] = {0, 1, 3, 2};  // In the order of the enum.
  return kWeights[static_cast<size_t>(state)];
}

std::vector<ReportCell> cells_of(const std::vector<ChunkState>& states) {
  std::vector<ReportCell> cells;
  const size_t count = std::min(states.size(), kMostCells);
  for (size_t i = 0; i < count; ++i) {
    const size_t first = i * states.size() / count, end = (i + 1) * states.size() / count;
    ReportCell cell{first, end - 1, CellState::present, 0};
    for (size_t chunk = first; chunk < end; ++chunk) {
      const CellState state = cell_state(states[chunk]);
      if (state == CellState::present) ++cell.present;
      if (weight_of(state) > weight_of(cell.worst)) cell.worst = state;
    }
    cells.push_back(cell);
  }
  return cells;
}

// Equal bins over [from, to).
std::vector<ReportBin> bins_of(const std::vector<uint64_t>& values, uint64_t from, uint64_t to) {
  std::vector<ReportBin> bins;
  if (values.empty()) return bins;
  const uint64_t step = std::max<uint64_t>((to - from + kBins - 1) / kBins, 1);
  for (uint64_t start = from; start < to; start += step) bins.push_back({start, start + step, 0});
  for (const uint64_t value : values)
    ++bins[std::min<size_t>((std::clamp(value, from, to - 1) - from) / step, bins.size() - 1)].count;
  return bins;
}

// Lengths of the documents of some rows, evenly spread. Rows that cannot be read are left out: the map shows them.
std::vector<uint64_t> sampled_lengths(const std::filesystem::path& directory, const Watch& watch) {
  std::vector<uint64_t> lengths;
  const auto set = ChunkSet::open(directory, {.allow_gaps = true});
  if (!set.ok()) return lengths;
  RowReader reader(*set, {});
  const uint64_t rows = (*set)->row_count(), count = std::min(rows, kSampledRows);
  for (uint64_t i = 0; i < count && !watch.stopped(); ++i) {
    const uint64_t row = i * rows / count;
    RowBoundaries boundaries;
    if (reader.read(std::span(&row, 1), RowColumns<int32_t>{}, boundaries).ok())
      lengths.insert(lengths.end(), boundaries.lengths.begin(), boundaries.lengths.end());
  }
  return lengths;
}

// Each bin twice as wide as the one before: documents have lengths of every magnitude.
std::vector<ReportBin> doubling_bins_of(const std::vector<uint64_t>& values) {
  std::vector<ReportBin> bins;
  for (const uint64_t value : values) {
    const auto bin = static_cast<size_t>(std::bit_width(value));
    while (bins.size() <= bin)
      bins.push_back({bins.empty() ? 0 : bins.back().to, uint64_t{1} << bins.size(), 0});
    ++bins[bin].count;
  }
  while (!bins.empty() && bins.front().count == 0) bins.erase(bins.begin());
  return bins;
}

}  // namespace

Status gather_chunks(const std::filesystem::path& directory, ReportData& report, const Watch& watch) {
  LMEMO_ASSIGN(const chunks::Plan plan, existing_plan(directory));
  LMEMO_ASSIGN(const chunks::SetStatus status,
               chunks::status_of(chunks::SetPaths{directory}, plan, {}, watch));
  const ChunkCounts counts = status.counts();
  ReportChunks set;
  set.directory = directory.string();
  set.total = status.states.size();
  set.missing = status.with(ChunkState::missing).size();
  set.damaged = status.with(ChunkState::damaged).size();
  set.stale = status.with(ChunkState::stale).size();
  set.rows = counts.rows;
  set.tokens = counts.tokens;
  set.documents = counts.documents;
  set.bytes = status.bytes();
  const double room = static_cast<double>(counts.rows) * plan.parameters.sequence_length;
  set.utilization = room > 0 ? static_cast<double>(counts.tokens) / room : 0;
  set.cells = cells_of(status.states);

  std::vector<uint64_t> percents;
  for (const auto& [number, entry] : status.registry) {
    if (entry.counts.rows == 0 || entry.counts.documents == 0) continue;
    percents.push_back(entry.counts.tokens * 100 / (entry.counts.rows * plan.parameters.sequence_length));
  }
  set.utilization_bins = bins_of(percents, 0, 100);
  set.length_bins = doubling_bins_of(sampled_lengths(directory, watch));
  report.chunk_sets.push_back(std::move(set));
  return {};
}

}  // namespace lmemo::cli
