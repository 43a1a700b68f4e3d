// The order of an index.
#pragma once

#include <vector>

#include "store/format.h"

namespace lmemo {

// Sorted by digest; of several with one digest only the newest stays.
void sort_and_keep_newest(std::vector<IndexEntry>& entries);

}  // namespace lmemo
