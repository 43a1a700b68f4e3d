// Texts of wide units to UTF-8, block by block.
#pragma once

#include <cstddef>

namespace lmemo::tokenizer {

inline constexpr size_t kUtf8Slack = 16;  // Bytes behind the text that may be overwritten.

#if defined(__x86_64__)
// Writes the units from `at` on by the eight, as long as all of them are characters below U+10000, and moves `at` behind
// them. Returns where the text ends.
char* write_short_blocks_avx2(const unsigned char* units, size_t count, char* out, size_t& at);
char* write_short_blocks_avx2(const char16_t* units, size_t count, char* out, size_t& at);
char* write_short_blocks_avx2(const char32_t* units, size_t count, char* out, size_t& at);
#endif

}  // namespace lmemo::tokenizer
