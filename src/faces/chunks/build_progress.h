// How far a build is. Every chunk goes through four phases; workers tell how far theirs is, and what they tell is added up, in source
// bytes, so that a display shows one figure for each phase whatever the number of workers.
#pragma once

#include <array>
#include <mutex>

#include "lmemo/chunks.h"
#include "lmemo/progress.h"

namespace lmemo::chunks {

enum class BuildPhase : uint8_t { tokenise, pack, compress, publish };
inline constexpr size_t kBuildPhases = 4;
std::string_view name_of(BuildPhase phase);

struct BuildTotals {
  uint64_t chunks = 0;
  uint64_t documents = 0;
  uint64_t bytes = 0;  // Of the sources.
  uint32_t sequence_length = 0;
  uint32_t vocab_size = 0;
  uint64_t memory_limit = 0;
};

class BuildProgress {
 public:
  BuildProgress(const Watch& watch, const BuildTotals& totals);

  // `interrupted` if the user wants to stop. From any thread.
  Status advance(BuildPhase phase, uint64_t source_bytes);
  void publish(const ChunkCounts& counts, uint64_t written_bytes);
  // A chunk is done with, whoever built it and whatever became of it.
  void finish_chunk(uint64_t documents);

 private:
  void report(BuildPhase phase);

  const Watch& watch_;
  const BuildTotals totals_;
  const int64_t start_ns_;
  std::mutex mutex_;                               // Guards everything below, and the watch.
  std::array<uint64_t, kBuildPhases> bytes_ = {};  // By phase.
  uint64_t chunks_ = 0, documents_ = 0, rows_ = 0, tokens_ = 0, written_bytes_ = 0;
  std::array<int64_t, kBuildPhases> reported_ns_ = {};  // Each phase now and then.
};

// One chunk on its way. What it did not tell until it goes away counts as done.
class ChunkSteps {
 public:
  ChunkSteps(BuildProgress& build, uint64_t source_bytes, uint64_t documents)
      : build_(build), source_bytes_(source_bytes), documents_(documents) {}
  ~ChunkSteps();
  ChunkSteps(const ChunkSteps&) = delete;
  ChunkSteps& operator=(const ChunkSteps&) = delete;

  // `part` of the phase is done, from 0 to 1.
  Status reach(BuildPhase phase, double part);
  void publish(const ChunkCounts& counts, uint64_t written_bytes) { build_.publish(counts, written_bytes); }

 private:
  BuildProgress& build_;
  const uint64_t source_bytes_, documents_;
  std::array<uint64_t, kBuildPhases> told_ = {};
};

}  // namespace lmemo::chunks
