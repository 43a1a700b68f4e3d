// Zeroed memory that takes no room before it is touched, in huge pages where it is large: a table that is asked all
// over the place spends half of its time on finding small pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace lmemo::tokenizer {

inline constexpr size_t kHugePage = size_t{2} << 20;

inline void* lazy_memory(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

// For vectors that become tables.
template <typename Value>
struct TableAllocator {
  using value_type = Value;

  TableAllocator() = default;
  template <typename Other>
  TableAllocator(const TableAllocator<Other>&) {}

  static bool is_large(size_t count) { return count * sizeof(Value) >= kHugePage / 2; }

  Value* allocate(size_t count) {
    if (!is_large(count)) return std::allocator<Value>().allocate(count);
    return static_cast<Value*>(lazy_memory(whole_pages(count)));
  }
  void deallocate(Value* values, size_t count) {
    if (!is_large(count)) return std::allocator<Value>().deallocate(values, count);
    ::munmap(values, whole_pages(count));
  }
  bool operator==(const TableAllocator&) const = default;

 private:
  static size_t whole_pages(size_t count) {
    return (count * sizeof(Value) + kHugePage - 1) / kHugePage * kHugePage;
  }
};

template <typename Value>
using TableVector = std::vector<Value, TableAllocator<Value>>;

}  // namespace lmemo::tokenizer
