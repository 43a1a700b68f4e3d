// Builds chunks of a plan: reads their sources, tokenises, packs, compresses, publishes. Any number of processes may do
// so at once in one directory: whoever claims a chunk builds it, and a claim goes with the process that has it. Should two
// build the same chunk all the same (a file system without locks), both publish the same bytes.
#pragma once

#include <functional>

#include "faces/chunks/build_progress.h"
#include "faces/chunks/plan.h"
#include "faces/chunks/set_directory.h"
#include "lmemo/progress.h"
#include "lmemo/tokenizer.h"
#include "sources/json_lines.h"

namespace lmemo::chunks {

struct BuildOptions {
  unsigned workers = 0;  // 0: one per core.
  uint64_t memory_limit = uint64_t{16} << 30;
  bool is_strict = false;        // A document that cannot be read is an error.
  bool waits_for_others = true;  // For chunks that other processes are building.
};

struct FailedChunk {
  uint64_t number = 0;
  Error error;
};

struct BuildReport {
  uint64_t built = 0;
  uint64_t by_others = 0;
  uint64_t source_bytes = 0;
  uint64_t written_bytes = 0;
  ChunkCounts counts;  // Sums over the chunks built here.
  LineProblems problems;
  std::vector<FailedChunk> failed;
  unsigned workers = 0;
  double seconds = 0;
};

// What a worker needs for a chunk of so many source bytes, and for the largest of these chunks.
uint64_t memory_for(uint64_t source_bytes);
uint64_t memory_of_worker(const Plan& plan, std::span<const uint64_t> numbers);
inline constexpr uint64_t kBaseMemory = uint64_t{192} << 20;  // Program, tokenizer and its memory of pieces.

// Those of `numbers` that are not there yet or not what the plan says. An error only if nothing can be done at all.
Result<BuildReport> build_chunks(const SetPaths& paths, const Plan& plan, const Tokenizer& tokenizer,
                                 std::vector<uint64_t> numbers, const BuildOptions& options,
                                 const Watch& watch);

// The tokens of an entry's documents; `content` keeps views of `tokens` and `offsets`.
struct ChunkTokens {
  std::vector<uint32_t> tokens;
  std::vector<uint64_t> offsets = {0};
  ChunkCounts left_out;
  LineProblems problems;
};
class RangeReader;
Result<ChunkTokens> tokens_of(const Plan& plan, const PlanEntry& entry, const Tokenizer& tokenizer,
                              bool is_strict, RangeReader& reader, ChunkSteps* steps = nullptr);

}  // namespace lmemo::chunks
