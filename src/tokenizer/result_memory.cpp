// Memory for results, kept for the next ones: touching fresh pages takes as long as a fifth of the encoding.
//
// Blocks of kMinPooled bytes and more are mapped, the larger ones in huge pages and with twice the addresses that are asked
// for: those cost nothing, and the next result, for which a little more may be asked, finds room in the same pages. When
// they are freed, up to kMaxKept bytes stay with the process.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "lmemo/tokenizer.h"

namespace lmemo::detail {
namespace {

constexpr size_t kMinPooled = size_t{256} << 10;
constexpr size_t kMaxKept = size_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMinHuge = kHugePage;

// Stands before the memory that is handed out.
struct alignas(64) Header {
  size_t byte_count;  // Of the whole block.
  size_t asked;       // The most that anybody asked for: only so much was touched.
};

size_t whole_units(size_t bytes) {
  const size_t unit = bytes >= kMinHuge ? kHugePage : size_t{64} << 10;
  return (bytes + sizeof(Header) + unit - 1) / unit * unit;
}

// The blocks that are kept, the last one freed last. Who finds it taken does without: nobody waits, and a process that
// was forked meanwhile is not stuck.
class Pool {
 public:
  Header* take(size_t asked) {
    if (taken_.test_and_set(std::memory_order_acquire)) return nullptr;
    Header* found = nullptr;
    for (size_t i = count_; i-- > 0 && !found;)
      if (kept_[i]->byte_count >= asked && kept_[i]->asked / 4 <= asked) found = remove(i);
    taken_.clear(std::memory_order_release);
    return found;
  }

  void give(Header* block) {
    if (block->asked > kMaxKept || taken_.test_and_set(std::memory_order_acquire)) return unmap(block);
    while (count_ == kept_.size() || kept_bytes_ + block->asked > kMaxKept) unmap(remove(0));
    kept_[count_++] = block;
    kept_bytes_ += block->asked;
    taken_.clear(std::memory_order_release);
  }

 private:
  Header* remove(size_t place) {
    Header* const block = kept_[place];
    kept_bytes_ -= block->asked;
    --count_;
    for (size_t i = place; i < count_; ++i) kept_[i] = kept_[i + 1];
    return block;
  }
  static void unmap(Header* block) { ::munmap(block, block->byte_count); }

  std::atomic_flag taken_;  // Guards everything below.
  std::array<Header*, 16> kept_{};
  size_t count_ = 0;
  size_t kept_bytes_ = 0;
};

constinit Pool pool;

}  // namespace

void* allocate_result(size_t bytes) {
  if (bytes < kMinPooled) return ::operator new(bytes);
  const size_t asked = whole_units(bytes);
  Header* block = pool.take(asked);
  if (!block) {
    const size_t byte_count = asked >= kMinHuge && asked <= kMaxKept ? 2 * asked : asked;
    void* const memory = ::mmap(nullptr, byte_count, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (byte_count >= kMinHuge) ::madvise(memory, byte_count, MADV_HUGEPAGE);
    block = static_cast<Header*>(memory);
    block->byte_count = byte_count;
    block->asked = 0;
  }
  block->asked = std::max(block->asked, asked);
  return block + 1;
}

void free_result(void* memory, size_t bytes) noexcept {
  if (bytes < kMinPooled) return ::operator delete(memory);
  pool.give(static_cast<Header*>(memory) - 1);
}

}  // namespace lmemo::detail
