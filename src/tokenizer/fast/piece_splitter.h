// Cuts a stretch of text into the pieces that the model sees one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lmemo::tokenizer {

struct PieceSpan {
  uint32_t begin, end;
};

class PieceSplitter {
 public:
  virtual ~PieceSplitter() = default;

  static constexpr size_t kMinCapacity = 128;

  // The next pieces of [begin, end), as distances from `begin`: up to `capacity` (at least kMinCapacity) are written
  // to `pieces`. Returns how many; and where to go on, in `next`: at the end there is no more. What lies between two
  // pieces belongs to none.
  // Requires: some text, of well-formed UTF-8, under 4 GiB.
  virtual size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
                       const char*& next) const = 0;
};

}  // namespace lmemo::tokenizer
