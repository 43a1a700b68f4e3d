// Builds a set into a directory: one thread reads, workers make rows, the caller's thread writes them in order.
#pragma once

#include "faces/dataset/set_identity.h"
#include "lmemo/store.h"

namespace lmemo::dataset {

struct SetPlan {
  const DatasetOptions* options = nullptr;
  TokenizerFacts facts;
  RowRecipe recipe;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<InputFile> files;  // Digests are filled in by build_set, from what it read.
};

// `directory` is empty and becomes the set. Without a store nothing is found and nothing kept.
Result<DatasetCounts> build_set(SetPlan& plan, const std::filesystem::path& directory, Store* store,
                                SeenFiles& seen, const Watch& watch);

// True if the row goes to eval: by its content and the seed, so no other row matters.
bool goes_to_eval(const Digest& row, int64_t seed, double share);

}  // namespace lmemo::dataset
