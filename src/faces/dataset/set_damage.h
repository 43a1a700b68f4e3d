// What of a set's own files is not as it was written: missing, cut, or with a flipped bit.
#pragma once

#include <filesystem>
#include <vector>

#include "faces/dataset/seen_files.h"
#include "faces/dataset/set_identity.h"
#include "lmemo/dataset.h"

namespace lmemo::dataset {

// Data files that look as they did when they were last found whole are not read, unless `rehash`. The small files beside
// them always are. A difference has what was found as `built` and what should be there as `asked`.
Result<std::vector<DatasetDifference>> damage_of(const std::filesystem::path& set, const SetFacts& facts,
                                                 SeenFiles& seen, bool rehash, const Watch& watch);

}  // namespace lmemo::dataset
