// Zeroed memory that takes no room before it is touched.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace lmemo::tokenizer {

inline void* lazy_memory(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace lmemo::tokenizer
