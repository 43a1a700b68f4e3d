// "<0x0A>": the names of tokens that stand for one byte.
#pragma once

#include <cstdint>
#include <string>

namespace lmemo::tokenizer {

inline std::string byte_token(unsigned char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace lmemo::tokenizer
