#if defined(__x86_64__)
#include <immintrin.h>

#include "codec/float_convert_dispatch.h"

// F16C has a bit of its own, so only these functions are made for it.
#define LMEMO_F16C __attribute__((target("avx2,f16c")))

namespace lmemo {
namespace {

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }

LMEMO_F16C void floats_to_halves(const float* from, uint16_t* to, size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 8), high);
  }
  kPortableFloats.floats_to_halves(from + i, to + i, count - i);
}

LMEMO_F16C void halves_to_floats(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  kPortableFloats.halves_to_floats(from + i, to + i, count - i);
}

// Eight bfloat16 in the low halves of eight words.
__m256i rounded(__m256i bits) {
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  return _mm256_srli_epi32(_mm256_or_si256(sum, is_nan), 16);
}

void floats_to_bfloats(const float* from, uint16_t* to, size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    // Packing works on each half of the registers; the permutation puts the quarters in order.
    const __m256i packed = _mm256_packus_epi32(rounded(load(from + i)), rounded(load(from + i + 8)));
    store(to + i, _mm256_permute4x64_epi64(packed, 0b11'01'10'00));
  }
  kPortableFloats.floats_to_bfloats(from + i, to + i, count - i);
}

void bfloats_to_floats(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    store(to + i,
          _mm256_slli_epi32(
              _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))), 16));
  kPortableFloats.bfloats_to_floats(from + i, to + i, count - i);
}

void split_planes(const uint16_t* from, uint8_t* front, uint8_t* back, size_t count) {
  const __m256i low_bytes = _mm256_set1_epi16(0xff);
  const auto rotated = [](__m256i x) {
    return _mm256_or_si256(_mm256_slli_epi16(x, 1), _mm256_srli_epi16(x, 15));
  };
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i a = rotated(load(from + i)), b = rotated(load(from + i + 16));
    const __m256i fronts = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    const __m256i backs = _mm256_packus_epi16(_mm256_and_si256(a, low_bytes), _mm256_and_si256(b, low_bytes));
    store(front + i, _mm256_permute4x64_epi64(fronts, 0b11'01'10'00));
    store(back + i, _mm256_permute4x64_epi64(backs, 0b11'01'10'00));
  }
  kPortableFloats.split_planes(from + i, front + i, back + i, count - i);
}

void join_planes(const uint8_t* front, const uint8_t* back, uint16_t* to, size_t count) {
  const auto unrotated = [](__m256i x) {
    return _mm256_or_si256(_mm256_srli_epi16(x, 1), _mm256_slli_epi16(x, 15));
  };
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i fronts = _mm256_permute4x64_epi64(load(front + i), 0b11'01'10'00);
    const __m256i backs = _mm256_permute4x64_epi64(load(back + i), 0b11'01'10'00);
    store(to + i, unrotated(_mm256_unpacklo_epi8(backs, fronts)));
    store(to + i + 16, unrotated(_mm256_unpackhi_epi8(backs, fronts)));
  }
  kPortableFloats.join_planes(front + i, back + i, to + i, count - i);
}

}  // namespace

const FloatKernel kAvx2Floats{floats_to_halves,  floats_to_bfloats, halves_to_floats,
                              bfloats_to_floats, split_planes,      join_planes};

}  // namespace lmemo
#endif
