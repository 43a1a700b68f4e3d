#include "tokenizer/fast/nfc_text.h"

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/mappings.h"

namespace lmemo::tokenizer {

// Asks about every character once: the tables behind the answers are made before the first text comes, too.
NfcText::NfcText(const Normalizer& nfc) : nfc_(nfc) {
  for (uint32_t c = 0x80; c < kCodePoints; ++c)
    if (may_change_in_nfc(c))
      is_touched_.set(c < 0x800 ? 0xC0 | c >> 6 : c < 0x10000 ? 0xE0 | c >> 12 : 0xF0 | c >> 18);
}

// Behind the next characters that are surely not touched. Requires: nothing of ASCII ever is.
size_t NfcText::end_of_untouched(std::string_view text, size_t at) const {
  while (at < text.size()) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) {
      const size_t behind = behind_ascii_blocks(text, at);
      at = behind > at ? behind : at + 1;
    } else {
      if (is_touched_[first] && may_change_in_nfc(char_at(text, at))) return at;
      at += char_bytes(text, at);
    }
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
    while (end < text.size() && may_change_in_nfc(char_at(text, end))) end += char_bytes(text, end);
    scratch.append(text.substr(copied, start - copied));
    scratch.append(nfc_.normalize(std::string(text.substr(start, end - start))));
    copied = end;
    touched = end_of_untouched(text, end);
  }
  scratch.append(text.substr(copied));
  return scratch;
}

}  // namespace lmemo::tokenizer
