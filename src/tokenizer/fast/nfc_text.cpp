#include "tokenizer/fast/nfc_text.h"

#include <bit>
#include <cassert>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/mappings.h"

namespace lmemo::tokenizer {

namespace {

#if defined(__SSE2__)
constexpr size_t kBlock = 16;

// A bit for each byte of the block that begins a character, but for ASCII and for U+4000 to U+9FFF, which are
// ideographs and some symbols: none of them may change (the constructor looks).
unsigned other_characters(const char* block) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block));
  const auto above = [&](int limit) {
    return _mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(limit)));
  };
  const __m128i is_first = _mm_andnot_si128(above(-1), above(0xBF - 0x100));
  const __m128i is_ideograph = _mm_andnot_si128(above(0xE9 - 0x100), above(0xE3 - 0x100));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_andnot_si128(is_ideograph, is_first)));
}
#endif

}  // namespace

// Asks about every character once: the tables behind the answers are made before the first text comes, too.
NfcText::NfcText(const Normalizer& nfc) : nfc_(nfc) {
  for (uint32_t c = 0x80; c < kCodePoints; ++c) {
    if (!may_change_in_nfc(c)) continue;
    is_touched_.set(c < 0x800 ? 0xC0 | c >> 6 : c < 0x10000 ? 0xE0 | c >> 12 : 0xF0 | c >> 18);
    if (c < 0x10000) may_change_.set(c);
  }
  for (unsigned first = 0xE4; first <= 0xE9; ++first) assert(!is_touched_[first]);
}

bool NfcText::may_change(std::string_view text, size_t at) const {
  if (!is_touched_[static_cast<unsigned char>(text[at])]) return false;
  const uint32_t c = char_at(text, at);
  return c < 0x10000 ? may_change_[c] : may_change_in_nfc(c);
}

// Behind the next characters that are surely not touched: the place of one that may change, or the end. Requires:
// nothing of ASCII ever is.
size_t NfcText::end_of_untouched(std::string_view text, size_t at) const {
#if defined(__SSE2__)
  for (; at + kBlock <= text.size(); at += kBlock)
    for (unsigned others = other_characters(text.data() + at); others != 0; others &= others - 1)
      if (const size_t place = at + static_cast<size_t>(std::countr_zero(others)); may_change(text, place))
        return place;
#endif
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0xC0 && may_change(text, at)) return at;
  }
  return at;
}

// A character that may not change and does not join what stands before it begins a part of its own. So a part to
// normalize goes from the one before a character that may change up to the next that may not.
std::string_view NfcText::rewrite(std::string_view text, std::string& scratch) const {
  size_t touched = end_of_untouched(text, 0);
  if (touched == text.size()) return text;
  scratch.clear();
  size_t copied = 0;
  while (touched < text.size()) {
    const size_t start = touched > copied ? touched - char_bytes_before(text, touched) : touched;
    size_t end = touched;
    while (end < text.size() && may_change(text, end)) end += char_bytes(text, end);
    scratch.append(text.substr(copied, start - copied));
    scratch.append(nfc_.normalize(std::string(text.substr(start, end - start))));
    copied = end;
    touched = end_of_untouched(text, end);
  }
  scratch.append(text.substr(copied));
  return scratch;
}

}  // namespace lmemo::tokenizer
