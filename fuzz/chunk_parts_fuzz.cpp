// Any bytes as what stands in a chunk file or in a plan: the first byte says as what.
#include "bytes_in_memory.h"
#include "faces/chunks/block_codec.h"
#include "faces/chunks/plan.h"
#include "faces/chunks/set_directory.h"
#include "faces/chunks/token_ranks.h"

using namespace lmemo;
using namespace lmemo::chunks;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of its own size, so that the sanitizer sees who reads past the end.
  const std::vector<uint8_t> copy(data + 1, data + size);
  const Bytes bytes = fuzz::bytes_from(copy.data(), copy.size());
  switch (data[0] % 6) {
    case 0: {
      ChunkRows rows;
      const std::vector<uint32_t> ids(65536, 7);
      const BlockFrame frame{
          .rows = 4, .sequence_length = 64, .vocab_size = 300, .has_ranks = (data[0] & 64) != 0, .ids = ids};
      if (decode_block(bytes, frame, rows).ok()) {
        fuzz::require(rows.row_count() == 4);
        for (size_t row = 0; row < 4; ++row) fuzz::require(rows.tokens_of(row).size() <= 64);
        for (const uint32_t token : rows.tokens) fuzz::require(token < 300);
      }
      break;
    }
    case 1: {
      const auto description = decode_description(bytes);
      if (description.ok()) fuzz::require(encode(*description) == text_of(bytes));
      break;
    }
    case 2: (void)TokenRanks::decode(bytes); break;
    case 3: (void)decode_sources(bytes); break;
    case 4: (void)decode_entries(bytes); break;
    case 5: (void)decode_registry(bytes); break;
  }
  return 0;
}
