// A piece table in a file, so that a new process starts with what the last one learned.
//
//   "lmemoPT1"  identity of the tokenizer (32 bytes)  number of pieces (u64)
//   for each piece: key (2 × u64: bytes, zeros, length in the last byte), number of ids (u32), ids (u32 each)
//   SHA-256 of all that (32 bytes)
//
// Numbers are little-endian. Nothing is believed before the digest was checked.
#pragma once

#include <string>

#include "lmemo/bytes.h"
#include "lmemo/result.h"
#include "tokenizer/fast/piece_table.h"

namespace lmemo::tokenizer {

std::string saved_pieces(const PieceTable& table, const Digest& tokenizer);

// Adds all pieces to the table, as far as there is room; returns how many there are. An error, and no change, if the
// file is damaged or another tokenizer's.
Result<size_t> load_saved_pieces(Bytes file, const Digest& tokenizer, PieceTable& table);

}  // namespace lmemo::tokenizer
