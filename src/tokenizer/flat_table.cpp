#include "tokenizer/flat_table.h"

#include <random>

namespace lmemo::tokenizer {

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

}  // namespace lmemo::tokenizer
