// Token ids in as few bytes as the vocabulary needs: 2 up to 65,536 tokens, 3 up to 16,777,216, else 4. Little-endian.
//
//   const TokenWidth width = token_width_for(tokenizer.vocab_size());
//   std::string packed(ids.size() * bytes_per_token(width), '\0');
//   pack_tokens(ids, width, packed.data());
//   unpack_tokens(bytes_of(packed), width, ids.data());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lmemo/bytes.h"

namespace lmemo {

enum class TokenWidth : uint8_t { two = 2, three = 3, four = 4 };

inline size_t bytes_per_token(TokenWidth width) { return static_cast<size_t>(width); }
// For ids below `id_limit`.
inline TokenWidth token_width_for(uint64_t id_limit) {
  if (id_limit <= uint64_t{1} << 16) return TokenWidth::two;
  return id_limit <= uint64_t{1} << 24 ? TokenWidth::three : TokenWidth::four;
}
// The narrowest that holds each of these.
TokenWidth narrowest_width(std::span<const uint32_t> ids);

// Requires: room for ids.size() * bytes_per_token(width), and each id fits.
void pack_tokens(std::span<const uint32_t> ids, TokenWidth width, void* to);
// Requires: room for packed.size() / bytes_per_token(width) ids.
void unpack_tokens(Bytes packed, TokenWidth width, uint32_t* to);

}  // namespace lmemo
