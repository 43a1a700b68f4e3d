// A line with the bytes behind it that the JSON parser may read.
#pragma once

#include <string>
#include <string_view>

#include "sources/line_blocks.h"

namespace lmemo::test {

class PaddedLine {
 public:
  explicit PaddedLine(std::string_view line) : bytes_(line), length_(line.size()) {
    bytes_.append(kLinePadding, '\0');
  }
  operator std::string_view() const { return std::string_view(bytes_).substr(0, length_); }

 private:
  std::string bytes_;
  size_t length_;
};

}  // namespace lmemo::test
