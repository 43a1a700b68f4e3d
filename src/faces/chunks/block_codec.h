// A block: some rows as bytes, and back.
//
//   value := header boundaries tokens
//   boundaries := row_pieces piece_lengths piece_documents piece_offsets     u32 each, as four planes of bytes; compressed
//   tokens := ids or ranks of all rows, `token_bytes` each; compressed
//
// What does not get smaller is stored as it is. Planes: the high bytes of small numbers are zeros, and side by side they
// vanish, even with LZ4. Tokens are not split into planes: repeated phrases would be cut in two (20 % larger).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codec/compression.h"
#include "lmemo/chunks.h"

namespace lmemo::chunks {

struct BlockHeader {
  uint32_t rows = 0;
  uint32_t pieces = 0;
  uint32_t tokens = 0;
  uint8_t token_bytes = 0;  // 1 to 4.
  Compression boundaries_compression = Compression::none;
  Compression tokens_compression = Compression::none;
  uint8_t reserved = 0;
  uint32_t stored_boundaries = 0;  // Bytes.
  uint32_t stored_tokens = 0;
};
static_assert(sizeof(BlockHeader) == 24);

struct BlockCoding {
  Compression compression = Compression::none;
  CompressionLevel level = CompressionLevel::standard;
  unsigned token_bytes = 2;
  std::span<const uint32_t> ranks = {};  // By id; empty: ids are stored as they are.
};

// Rows before they are written. Their tokens are where the documents are: each is copied once, as it is stored.
struct RowsToWrite {
  std::vector<ChunkPiece> pieces;             // Of all rows, at most 2^25 tokens.
  std::vector<const uint32_t*> piece_tokens;  // Where the tokens of each are.
  std::vector<uint32_t> piece_counts;         // Of each row.
  size_t token_count = 0;
};

// Memory is the caller's, is reused, and only grows: clearing it again for each block would
// cost as much as writing it.
struct BlockBuffers {
  std::vector<std::byte> plain, value;
};
Result<Bytes> encode_block(const RowsToWrite& rows, const BlockCoding& coding, BlockBuffers& buffers);

// What a reader knows before it looks at a block, and checks it against.
struct BlockFrame {
  uint32_t rows = 0;
  uint32_t sequence_length = 0;
  uint32_t vocab_size = 0;
  bool has_ranks = false;
  // By rank, if so; 256 or 65536 of them where ranks have one or two bytes, kNoToken behind the last.
  std::span<const uint32_t> ids = {};
};
inline constexpr uint32_t kNoToken = ~uint32_t{0};

Status decode_block(Bytes value, const BlockFrame& frame, ChunkRows& rows);

}  // namespace lmemo::chunks
