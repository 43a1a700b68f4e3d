// The scan that makes or extends a plan: reads every source once, looks for the ends of lines, hashes. Tokenises nothing
// but a sample, from which the size of a chunk in source bytes is derived, once, when the plan is begun.
#pragma once

#include <functional>

#include "faces/chunks/plan.h"
#include "lmemo/progress.h"
#include "lmemo/tokenizer.h"

namespace lmemo::chunks {

// One file of the inputs, as given or found by a glob or in a directory.
struct InputFile {
  Path path;
  SourceType type = SourceType::text;
};

// Files, directories and globs, in the order given; what is in a directory or matches a glob is sorted, and is not the set
// itself. Absolute.
Result<std::vector<InputFile>> find_input_files(const std::vector<std::string>& inputs,
                                                const Path& working_directory, const Path& set_directory);
// By its name: .jsonl, .ndjson, .json and the same with .gz or .zst.
SourceType type_of_input(const Path& path);

// How many source bytes give a token, from the starts of up to 16 files. The same for the same files.
struct Sample {
  uint64_t bytes = 0;
  uint64_t tokens = 0;
  uint64_t documents = 0;
  std::vector<double> bytes_per_token;  // Of each file, for error bars.
  double ratio() const {
    return tokens == 0 ? 4.0 : static_cast<double>(bytes) / static_cast<double>(tokens);
  }
};
Result<Sample> sample_inputs(const std::vector<InputFile>& files, const ChunkParameters& parameters,
                             const Tokenizer& tokenizer);

struct ScanReport {
  uint64_t files = 0;
  uint64_t bytes = 0;  // Newly planned.
  uint64_t documents = 0;
  uint64_t duplicates = 0;
  // Files that are planned already and look different now: `show` says which chunks are stale.
  uint64_t changed = 0;
};

// What the plan lacks: new files, and what was appended to known ones. Nothing is written. Requires: chunk_bytes is set.
Result<PlanPart> scan(const Plan& plan, const std::vector<InputFile>& files, ScanReport& report,
                      const Watch& watch);

}  // namespace lmemo::chunks
