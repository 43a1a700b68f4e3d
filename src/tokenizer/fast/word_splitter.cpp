#include "tokenizer/fast/word_splitter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

enum WordClass : uint8_t { kInWord, kBetweenWords, kAlone };

const CodePointTable<uint8_t>& word_classes() {
  static const CodePointTable<uint8_t> classes = [] {
    std::vector<uint8_t> all(kCodePoints, kInWord);
    for (const auto& [first, last, properties] : property_ranges()) {
      const WordClass found = properties.flags & kSpace         ? kBetweenWords
                              : properties.flags & kPunctuation ? kAlone
                                                                : kInWord;
      std::fill(all.begin() + first, all.begin() + last + 1, found);
    }
    return CodePointTable<uint8_t>(all);
  }();
  return classes;
}

class WordSplitter final : public PieceSplitter {
 public:
  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    const auto place = [&](const char* at) { return static_cast<uint32_t>(at - begin); };
    size_t count = 0;
    const char* at = begin;
    while (at < end && count < capacity) {
#if defined(__x86_64__)
      if (end - at >= 64 && capacity - count >= 64 && is_ascii(at)) {
        const char* const done = split_block(begin, at, pieces, count);
        if (done != at) {
          at = done;
          continue;
        }
      }
#endif
      const char* const start = at;
      size_t byte_count;
      const uint8_t first = classes_.at(at, byte_count);
      at += byte_count;
      if (first == kBetweenWords) continue;
      if (first == kInWord)
        while (at < end && classes_.at(at, byte_count) == kInWord) at += byte_count;
      pieces[count++] = {place(start), place(at)};
    }
    next = at;
    return count;
  }

 private:
#if defined(__x86_64__)
  // Whether the next bytes are. Else a block has few pieces to give.
  static bool is_ascii(const char* at) {
    uint64_t bytes;
    std::memcpy(&bytes, at, 8);
    return (bytes & 0x8080808080808080) == 0;
  }

  // The pieces that end among the ASCII characters of the next 64 bytes, and where they end. Requires: `at` begins a
  // piece or lies between.
  static const char* split_block(const char* begin, const char* at, PieceSpan* pieces, size_t& count) {
    uint64_t beyond_ascii = 0, between = 0, alone = 0;
    for (size_t i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
      // Moved so that the range begins at the lowest signed number.
      const auto in_range = [&](int first, int range) {
        const __m128i from_lowest = _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(-128 - first)));
        return _mm_cmplt_epi8(from_lowest, _mm_set1_epi8(static_cast<char>(-128 + range)));
      };
      const auto bits = [&](__m128i mask) {
        return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(mask))} << 16 * i;
      };
      beyond_ascii |= bits(bytes);
      between |= bits(_mm_or_si128(in_range('\t', 5), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '))));
      alone |= bits(_mm_or_si128(_mm_or_si128(in_range('!', 15), in_range(':', 7)),
                                 _mm_or_si128(in_range('[', 6), in_range('{', 4))));
    }
    // What is beyond ASCII counts as a word, so that a word right before it does not end.
    const uint64_t word = ~(between | alone);
    const uint64_t starts = ~between & ~(word & word << 1);
    uint64_t ends = ~(word & word >> 1) & ~between;  // The last byte of a piece.
    ends &= ~(uint64_t{1} << 63) | alone;            // A word may go on behind the block.
    if (beyond_ascii != 0) ends &= (beyond_ascii & (0 - beyond_ascii)) - 1;
    if (ends == 0) return at + std::countr_one(between);
    const auto block = static_cast<uint32_t>(at - begin);
    uint64_t left_starts = starts;
    uint32_t last = 0;
    for (; ends != 0; ends &= ends - 1, left_starts &= left_starts - 1) {
      last = static_cast<uint32_t>(std::countr_zero(ends)) + 1;
      pieces[count++] = {block + static_cast<uint32_t>(std::countr_zero(left_starts)), block + last};
    }
    return at + last;
  }
#endif

  const CodePointTable<uint8_t>& classes_ = word_classes();
};

}  // namespace

std::unique_ptr<PieceSplitter> make_word_splitter() { return std::make_unique<WordSplitter>(); }

}  // namespace lmemo::tokenizer
