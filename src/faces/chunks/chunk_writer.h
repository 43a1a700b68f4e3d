// Tokens of a chunk's documents to a chunk file: pack, compress, checksum, sync. The caller gives the file its name.
#pragma once

#include <span>

#include "base/file_system.h"
#include "faces/chunks/chunk_records.h"

namespace lmemo::chunks {

class ChunkSteps;

// Rows of a block hold about this many tokens: enough for the compressor, few enough to read one row alone. LZ4 looks back
// 64 KB only. zstd at 2^18 instead of 2^16 gives 4 % less and is faster; at 2^20 it would give 4 % less again.
inline constexpr uint32_t kTokensPerBlock = 1u << 16;
inline constexpr uint32_t kTokensPerZstdBlock = 1u << 18;
uint32_t rows_per_block(const ChunkParameters& parameters);

struct ChunkContent {
  uint64_t number = 0;
  std::vector<RangeContent> ranges;
  ChunkCounts left_out;               // Only what was left out; the rest is counted here.
  std::span<const uint32_t> tokens;   // Of all documents, one after the other, below vocab_size.
  std::span<const uint64_t> offsets;  // Document i has tokens [offsets[i], offsets[i + 1]).
};

struct WrittenChunk {
  ChunkCounts counts;
  uint32_t blocks = 0;
  uint64_t bytes = 0;
  Digest sha256;          // Of the whole file.
  Digest content_sha256;  // Of what precedes its description.
  Digest key;
};

// `path` must not be there. A file that could not be finished is removed. `steps` is told how far it is, and may
// stop it.
Result<WrittenChunk> write_chunk(FileSystem& files, const Path& path, const ChunkParameters& parameters,
                                 const ChunkContent& content, ChunkSteps* steps = nullptr);

}  // namespace lmemo::chunks
