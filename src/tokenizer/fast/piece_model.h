// The ids of one piece, made anew: what the piece table did not know.
#pragma once

#include <string_view>

#include "lmemo/result.h"
#include "tokenizer/fast/id_buffer.h"

namespace lmemo::tokenizer {

class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the ids of the piece, no more than it has bytes. Requires: not empty, well-formed UTF-8.
  virtual Status encode(std::string_view piece, IdBuffer& out) const = 0;
};

}  // namespace lmemo::tokenizer
