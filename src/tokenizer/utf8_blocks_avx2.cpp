// Eight characters at once: the bytes of each in a lane of its own, and then those that count moved together. A branch on
// how long a character is goes wrong again and again where scripts take turns.
#if defined(__x86_64__)

#include "tokenizer/utf8_blocks.h"

#include <immintrin.h>

#include <array>
#include <cstdint>

namespace lmemo::tokenizer {
namespace {

constexpr size_t kLanes = 8;

// For four lanes, by which of them have at least two bytes (the low four bits) and which have three: where each byte of
// the text stands, and how many there are.
struct Together {
  alignas(16) std::array<std::array<uint8_t, 16>, 256> places{};
  std::array<uint8_t, 256> byte_counts{};
};

constexpr Together together() {
  Together made;
  for (unsigned which = 0; which < 256; ++which) {
    uint8_t count = 0;
    made.places[which].fill(0x80);
    for (unsigned lane = 0; lane < 4; ++lane) {
      const unsigned bytes = 1 + (which >> lane & 1) + (which >> (lane + 4) & 1);
      for (unsigned i = 0; i < bytes; ++i) made.places[which][count++] = static_cast<uint8_t>(4 * lane + i);
    }
    made.byte_counts[which] = count;
  }
  return made;
}

constexpr Together kTogether = together();

__m256i eight(const unsigned char* units) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(units)));
}
__m256i eight(const char16_t* units) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(units)));
}
__m256i eight(const char32_t* units) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(units)); }

unsigned bits(__m256i lanes) { return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes))); }

char* write_four(__m128i lanes, unsigned which, char* out) {
  const auto* const places = reinterpret_cast<const __m128i*>(kTogether.places[which].data());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(lanes, _mm_load_si128(places)));
  return out + kTogether.byte_counts[which];
}

template <typename Unit>
char* write_blocks(const Unit* units, size_t count, char* out, size_t& at) {
  const auto all = [](uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); };
  const __m256i six_bits = all(0x3F), inner = all(0x80);
  for (; at + kLanes <= count; at += kLanes) {
    const __m256i c = eight(units + at);
    const __m256i has_two = _mm256_cmpgt_epi32(c, all(0x7F));
    if (bits(has_two) == 0) {  // One of four bytes has this bit as a sign, and is sorted out below.
      const __m256i pairs = _mm256_packus_epi32(c, c);
      const __m256i bytes = _mm256_packus_epi16(pairs, pairs);
      const int low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);
      const uint64_t text = static_cast<uint32_t>(low) | uint64_t{static_cast<uint32_t>(high)} << 32;
      if (bits(c) != 0) return out;
      __builtin_memcpy(out, &text, 8);
      out += 8;
      continue;
    }
    const __m256i has_three = _mm256_cmpgt_epi32(c, all(0x7FF));
    const __m256i is_long = _mm256_cmpgt_epi32(c, all(0xFFFF));
    const __m256i is_half = _mm256_cmpeq_epi32(_mm256_and_si256(c, all(0xFFFFF800)), all(0xD800));
    if (bits(_mm256_or_si256(c, _mm256_or_si256(is_long, is_half))) != 0) return out;

    const __m256i last = _mm256_or_si256(_mm256_and_si256(c, six_bits), inner);
    const __m256i upper = _mm256_srli_epi32(c, 6);
    const __m256i middle = _mm256_or_si256(_mm256_and_si256(upper, six_bits), inner);
    const __m256i two = _mm256_or_si256(_mm256_or_si256(upper, all(0xC0)), _mm256_slli_epi32(last, 8));
    const __m256i three =
        _mm256_or_si256(_mm256_or_si256(_mm256_srli_epi32(c, 12), all(0xE0)),
                        _mm256_or_si256(_mm256_slli_epi32(middle, 8), _mm256_slli_epi32(last, 16)));
    const __m256i lanes = _mm256_blendv_epi8(_mm256_blendv_epi8(c, two, has_two), three, has_three);
    const unsigned twos = bits(has_two), threes = bits(has_three);
    out = write_four(_mm256_castsi256_si128(lanes), (twos & 15) | (threes & 15) << 4, out);
    out = write_four(_mm256_extracti128_si256(lanes, 1), twos >> 4 | (threes >> 4) << 4, out);
  }
  return out;
}

}  // namespace

char* write_short_blocks_avx2(const unsigned char* units, size_t count, char* out, size_t& at) {
  return write_blocks(units, count, out, at);
}
char* write_short_blocks_avx2(const char16_t* units, size_t count, char* out, size_t& at) {
  return write_blocks(units, count, out, at);
}
char* write_short_blocks_avx2(const char32_t* units, size_t count, char* out, size_t& at) {
  return write_blocks(units, count, out, at);
}

}  // namespace lmemo::tokenizer

#endif
