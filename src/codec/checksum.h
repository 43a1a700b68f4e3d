// XXH3, 64 bits: finds bit rot and torn writes. It identifies nothing; identities are SHA-256.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "lmemo/bytes.h"

namespace lmemo {

uint64_t checksum(Bytes bytes, uint64_t seed = 0);
// Of the concatenation of the parts.
uint64_t checksum(std::initializer_list<Bytes> parts, uint64_t seed);

}  // namespace lmemo
