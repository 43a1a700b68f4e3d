// What stands in a chunk file beside its rows. A chunk is a segment (store/format.h) with these records, in this order:
//
//   chunk.block   the rows, block by block (block_codec.h)
//   chunk.ids     the token ids behind the ranks in the blocks (token_ranks.h), where blocks hold ranks
//   chunk         last: what the chunk is (its key) and what is in it (its description)
//
// Nothing in it tells when, where or by whom it was built: the same content gives the same bytes. Times are 0, and the
// nonce comes from the chunk's key.
#pragma once

#include <string>
#include <vector>

#include "lmemo/chunks.h"
#include "lmemo/key.h"

namespace lmemo::chunks {

inline constexpr std::string_view kBlockKind = "chunk.block";
inline constexpr std::string_view kIdsKind = "chunk.ids";
inline constexpr std::string_view kChunkKind = "chunk";
inline constexpr uint32_t kDescriptionVersion = 1;
inline constexpr uint32_t kMaxSequenceLength = 1u << 24;
inline constexpr uint64_t kMaxVocabulary = 1u << 26;

// A part of a source as a chunk sees it: what it holds, not where it lies.
struct RangeContent {
  uint32_t source = 0;  // Its number in the plan.
  uint64_t bytes = 0;
  uint64_t documents = 0;
  Digest sha256;
  bool operator==(const RangeContent&) const = default;
};

// The identity of a chunk: its number, the content it is made of, and every parameter that changes a byte of it.
Key chunk_key(uint64_t number, const ChunkParameters& parameters, std::span<const RangeContent> ranges);
// Everything but the ranges, back from a key that was read. `corruption` if it is not one of a chunk.
Result<ChunkParameters> parameters_of(const Key& key);
// How parameters stand in a key; the plan uses the same.
std::vector<Field> parameter_fields(const ChunkParameters& parameters);

Key block_key(uint32_t block);
Key ids_key();

struct Description {
  uint64_t number = 0;
  ChunkCounts counts;
  uint32_t rows_per_block = 0;
  Digest sha256;                        // Of the file up to the record of this description.
  uint64_t ids_offset = 0;              // Of the record chunk.ids; 0: none.
  std::vector<uint64_t> block_offsets;  // Of the records.
  std::vector<RangeContent> ranges;
};

std::string encode(const Description& description);
Result<Description> decode_description(Bytes value);

}  // namespace lmemo::chunks
