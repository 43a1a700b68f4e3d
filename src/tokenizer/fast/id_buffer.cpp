#include "tokenizer/fast/id_buffer.h"

#include <sys/mman.h>

namespace lmemo::tokenizer {

void IdBuffer::expect(size_t count) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (ids_.size() >= count) return;
  ids_.reserve(count);
  ids_.resize(count);
  // Memory that was never touched comes in large pages: a tenth of the time goes into small ones.
  const auto begin = (reinterpret_cast<uintptr_t>(ids_.data()) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = reinterpret_cast<uintptr_t>(ids_.data() + count) / kHugePage * kHugePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace lmemo::tokenizer
