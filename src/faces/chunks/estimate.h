// What a set would take, from a sample of its inputs: some 4 MB, spread over all of them, tokenised, packed and written.
#pragma once

#include "faces/chunks/plan_scan.h"

namespace lmemo::chunks {

struct Estimate {
  uint64_t files = 0;
  uint64_t sampled_bytes = 0;
  double source_bytes = 0;  // Uncompressed.
  double documents = 0;
  double tokens = 0;
  double rows = 0;
  double chunks = 0;
  double disk_bytes = 0;
  uint64_t memory_bytes_per_worker = 0;
  double seconds = 0;  // With one worker on this machine.
  // Of tokens and rows, at 95 %: by how much the samples differ. 0: everything was read.
  double relative_error = 0;
  bool is_from_starts = false;  // Some inputs are compressed: only their starts were looked at.
};

// `plan` has the parameters alone. Duplicates are not looked for.
Result<Estimate> estimate(const std::vector<InputFile>& files, const Plan& plan, const Tokenizer& tokenizer);

}  // namespace lmemo::chunks
