#include "tokenizer/fast/id_buffer.h"

namespace lmemo::tokenizer {

void IdBuffer::expect(size_t count) {
  if (ids_.size() >= count) return;
  ids_.reserve(count);
  ids_.resize(count);
}

}  // namespace lmemo::tokenizer
