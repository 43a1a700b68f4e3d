// Which entries of a segment have all the wanted fields. Asks the fields block where there is one.
#pragma once

#include <string>
#include <vector>

#include "store/segment.h"

namespace lmemo {

class FieldFilter {
 public:
  explicit FieldFilter(const ScanFilter& filter);
  // Entries of one segment are best asked for one after another. Not for erasures.
  bool matches(const Segment& segment, uint32_t ordinal);

 private:
  void prepare(const Segment& segment);

  std::string kind_;
  std::vector<std::string> wanted_;  // Encoded fields.
  const Segment* prepared_ = nullptr;
  bool has_all_ = false;           // Each wanted field occurs somewhere in the segment.
  std::vector<uint32_t> numbers_;  // Of the wanted fields in its fields block.
};

}  // namespace lmemo
