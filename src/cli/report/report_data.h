// What a report shows, gathered and already aggregated: nothing here grows with the number of entries or chunks, so
// the page stays small and quick however large the store is. The page and `lmemo report --json` are made from this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lmemo::cli {

struct ReportShare {
  std::string name;
  std::string detail;  // For the hover and for readers of the table: "tokens · 1,234 entries".
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

struct ReportRun {
  std::string id;
  std::string face;
  std::string source;
  int64_t started_ns = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  double spent_seconds = 0;  // Computing what was missed.
  double saved_seconds = 0;  // What the hits would have taken, at the pace of the misses.
  double hit_rate() const {
    return hits + misses ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0;
  }
};

// All runs of one face.
struct ReportFace {
  std::string name;
  uint64_t hits = 0, misses = 0;
  double saved_seconds = 0;
  double hit_rate() const {
    return hits + misses ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0;
  }
};

struct ReportCount {
  std::string name;
  uint64_t count = 0;
};

enum class CellState : uint8_t { present, missing, damaged, stale };

// A stretch of neighbouring chunks.
struct ReportCell {
  uint64_t first = 0, last = 0;  // Chunk numbers, both included.
  CellState worst = CellState::present;
  uint64_t present = 0;  // So many of them are sound.
};

struct ReportBin {
  uint64_t from = 0, to = 0;  // Half open.
  uint64_t count = 0;
};

struct ReportChunks {
  std::string directory;
  uint64_t total = 0, missing = 0, damaged = 0, stale = 0;
  uint64_t rows = 0, tokens = 0, bytes = 0, documents = 0;
  double utilization = 0;
  std::vector<ReportCell> cells;
  std::vector<ReportBin> utilization_bins;  // Chunks by how full their rows are, in percent.
  std::vector<ReportBin> length_bins;       // Documents of some rows by their length, in tokens.
};

struct ReportPresence {
  std::string model;
  uint64_t prompts = 0;
  std::vector<int64_t> layers;
  // A row stands for a stretch of prompts; each value is the share of them that has the layer.
  struct Row {
    uint64_t first = 0, last = 0;
    std::vector<double> shares;
  };
  std::vector<Row> rows;
};

struct ReportData {
  std::string version;
  std::string made_at;
  std::string store;
  std::string store_words;  // What a command needs to be about this store: " --store DIR", or nothing.
  bool has_store = false;
  bool is_unreadable = false;  // Files of it, which nobody could look into.
  bool is_damaged = false;  // Noticed while it was opened and listed; only `lmemo verify` reads every byte.
  uint64_t entries = 0, live_bytes = 0, disk_bytes = 0, max_bytes = 0;

  // One sentence: does anything need attention, and what to run about it.
  bool needs_attention = false;
  std::string sentence;
  std::string command;

  std::vector<ReportShare> kinds, models, tokenizers;  // Largest first; the small ones are one row, "others".
  std::vector<ReportRun> runs;                         // Oldest first, the newest so many.
  std::vector<ReportFace> faces;                       // Of these runs, in the order of their first one.
  std::vector<ReportCount> miss_reasons;
  std::vector<ReportChunks> chunk_sets;
  std::vector<ReportPresence> presence;
};

}  // namespace lmemo::cli
