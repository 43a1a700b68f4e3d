// Token ids by how often a chunk has them. In a block stands the rank of a token, not its id: frequent tokens are small
// numbers, whose high bytes are alike, and that makes zstd's output 5 to 9 % smaller (bench/chunks). A chunk has fewer
// tokens than a vocabulary, so ranks need two bytes where ids need three.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo::chunks {

// How many bytes hold every number below `count`: 1 to 4.
unsigned bytes_for(uint64_t count);

Status check_tokens(std::span<const uint32_t> tokens, uint32_t vocab_size);

class TokenRanks {
 public:
  // Ids of like frequency (as many bits in their count) stand together, by id: the table itself is then small.
  // Says so if a token is not in the vocabulary, as check_tokens() does.
  static Result<TokenRanks> of(std::span<const uint32_t> tokens, uint32_t vocab_size);
  static Result<TokenRanks> decode(Bytes value);
  std::string encode() const;

  size_t size() const { return ids_.size(); }
  std::span<const uint32_t> ids() const { return ids_; }
  // By id; only for those that occur. Empty after decode().
  std::span<const uint32_t> ranks() const { return ranks_; }

 private:
  std::vector<uint32_t> ids_;    // By rank.
  std::vector<uint32_t> ranks_;  // By id.
};

}  // namespace lmemo::chunks
