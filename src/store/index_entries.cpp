#include "store/index_entries.h"

#include <algorithm>

namespace lmemo {

void sort_and_keep_newest(std::vector<IndexEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const IndexEntry& a, const IndexEntry& b) {
    if (const auto order = a.digest <=> b.digest; order != 0) return order < 0;
    if (a.written_ns != b.written_ns) return a.written_ns > b.written_ns;
    return a.offset > b.offset;
  });
  const auto same_digest = [](const IndexEntry& a, const IndexEntry& b) { return a.digest == b.digest; };
  entries.erase(std::unique(entries.begin(), entries.end(), same_digest), entries.end());
}

}  // namespace lmemo
