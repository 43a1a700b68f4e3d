// The ids of one piece, made anew: what the piece table did not know.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lmemo/result.h"
#include "tokenizer/fast/id_buffer.h"
#include "tokenizer/fast/piece_table.h"

namespace lmemo::tokenizer {

// A piece that has this one id, which is known before it is ever met.
struct KnownPiece {
  PieceTable::Key key;
  uint32_t id;
};

// Notes the piece if it is one for the piece table.
inline void add_known(std::vector<KnownPiece>& known, std::string_view piece, uint32_t id) {
  if (!piece.empty() && piece.size() <= PieceTable::kMaxKeyBytes)
    known.push_back({PieceTable::key_of(piece), id});
}

class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the ids of the piece, no more than it has bytes. Requires: not empty, well-formed UTF-8.
  virtual Status encode(std::string_view piece, IdBuffer& out) const = 0;

  // The same for several pieces, and says where the ids of each are: who waits for memory can wait for all of them
  // together. Requires: at most kShortBytes each.
  static constexpr size_t kShortBytes = 31;
  virtual Status encode_short(std::span<const std::string_view> pieces, IdBuffer& out,
                              IdRange* ranges) const {
    for (const std::string_view piece : pieces) {
      const size_t first = out.size();
      LMEMO_TRY(encode(piece, out));
      *ranges++ = {first, out.size() - first};
    }
    return {};
  }
};

}  // namespace lmemo::tokenizer
