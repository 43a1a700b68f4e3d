// Copies of more bytes than the caches of a core hold, past them.
//
//   expect_large(out, byte_count);            // New memory, before it is written to.
//   stream_copy(out, from, byte_count);       // As often as it takes, then:
//   end_stream();
#pragma once

#include <cstddef>

namespace lmemo {

// From this on, what is written is likely to have left the second-level cache before anybody reads it.
inline constexpr size_t kLargeBytes = size_t{1} << 20;

// As memcpy, but what is written goes straight to memory: no line of it is read first, and nothing is pushed out of the caches.
// Others may see it only after end_stream().
void stream_copy(std::byte* to, const std::byte* from, size_t byte_count);
void end_stream();

// Asks for pages of 2 MB where there is room for them: a page fault every 4 KB takes longer than the copy.
void expect_large(std::byte* memory, size_t byte_count);

}  // namespace lmemo
