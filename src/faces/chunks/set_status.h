// What a directory of chunks has, lacks, and has wrong.
#pragma once

#include <array>

#include "faces/chunks/plan.h"
#include "faces/chunks/reconcile.h"
#include "faces/chunks/set_directory.h"

namespace lmemo::chunks {

enum class ChunkState : uint8_t { sound, missing, damaged, stale };
std::string_view name_of(ChunkState state);

struct DamagedChunk {
  uint64_t number = 0;
  std::string what;
};

struct SetStatus {
  std::vector<ChunkState> states;  // By number.
  Registry registry;               // Of those that could be read, stale ones too.
  std::vector<DamagedChunk> damaged;
  std::vector<uint64_t> foreign;               // Chunk files that the plan does not know.
  std::vector<std::string> coverage_problems;  // Of the plan: documents twice, or in no chunk.
  std::vector<uint64_t> claimed;               // Being built right now.
  Reconciliation sources;
  uint64_t checked = 0, checked_bytes = 0;  // Read in full.

  std::vector<uint64_t> with(ChunkState state) const;
  bool is_complete() const;
  ChunkCounts counts() const;  // Of the sound ones.
  uint64_t bytes() const;
};

enum class Check {
  changed,  // Reads files in full that do not look as they did when they were registered.
  all,      // Reads every file.
};

struct StatusOptions {
  Check check = Check::changed;
  double sample = 1;  // With Check::all: which part of the chunks, spread evenly.
  bool compares_sources = true;
  unsigned workers = 1;
};

Result<SetStatus> status_of(const SetPaths& paths, const Plan& plan, const StatusOptions& options,
                            const Watch& watch);

// Leftovers of builds that are no longer alive.
struct Leftover {
  Path path;
  uint64_t bytes = 0;
};
Result<std::vector<Leftover>> find_leftovers(const SetPaths& paths);
// Only if its builder is really gone; false if it lives.
Result<bool> remove_leftover(const Leftover& leftover);

// Writes DIR/metadata.json anew from the plan and the chunks.
Status write_metadata(const SetPaths& paths, const Plan& plan, const SetStatus& status);

}  // namespace lmemo::chunks
