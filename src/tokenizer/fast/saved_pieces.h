// The tables of pieces in a file, so that a new process starts with what the last one learned.
//
//   "lmemoPT2"  identity of the tokenizer (32 bytes)  number of short pieces, of long ones (u64 each)
//   for each short piece: key (2 × u64: bytes, zeros, length in the last byte), number of ids (u32), ids (u32 each)
//   for each long piece: number of bytes (u32), number of ids (u32), ids (u32 each), bytes
//   SHA-256 of all that (32 bytes)
//
// Numbers are little-endian. Nothing is believed before the digest was checked.
#pragma once

#include <filesystem>
#include <string>

#include "lmemo/bytes.h"
#include "lmemo/result.h"
#include "tokenizer/fast/long_piece_table.h"
#include "tokenizer/fast/piece_table.h"

namespace lmemo::tokenizer {

std::string saved_pieces(const PieceTable& table, const LongPieceTable& long_table, const Digest& tokenizer);

// Adds all pieces to the tables, as far as there is room; returns how many there are. An error, and no change, if the
// file is damaged or another tokenizer's.
Result<size_t> load_saved_pieces(Bytes file, const Digest& tokenizer, PieceTable& table,
                                 LongPieceTable& long_table);

// The same with a file of that name, which is written whole or not at all. Loading what is not there gives 0.
Status save_pieces_to(const std::filesystem::path& path, const PieceTable& table,
                      const LongPieceTable& long_table, const Digest& tokenizer);
Result<size_t> load_pieces_from(const std::filesystem::path& path, const Digest& tokenizer, PieceTable& table,
                                LongPieceTable& long_table);

}  // namespace lmemo::tokenizer
