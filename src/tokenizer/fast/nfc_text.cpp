#include "tokenizer/fast/nfc_text.h"

#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/mappings.h"

namespace lmemo::tokenizer {
namespace {

// Behind the next characters that are surely not touched: nothing below U+0300 is (found by asking for each).
size_t end_of_untouched(std::string_view text, size_t at) {
  while (at < text.size()) {
    at = behind_ascii_blocks(text, at);
    if (at == text.size()) break;
    const size_t byte_count = char_bytes(text, at);
    if (byte_count > 1 && may_change_in_nfc(char_at(text, at))) return at;
    at += byte_count;
  }
  return at;
}

}  // namespace

// A character that may not change and does not join what stands before it begins a part of its own. So a part to
// normalize goes from the one before a character that may change up to the next that may not.
std::string_view nfc_text(std::string_view text, const Normalizer& nfc, std::string& scratch) {
  size_t touched = end_of_untouched(text, 0);
  if (touched == text.size()) return text;
  scratch.clear();
  size_t copied = 0;
  while (touched < text.size()) {
    const size_t start = touched > copied ? touched - char_bytes_before(text, touched) : touched;
    size_t end = touched;
    while (end < text.size() && may_change_in_nfc(char_at(text, end))) end += char_bytes(text, end);
    scratch.append(text.substr(copied, start - copied));
    scratch.append(nfc.normalize(std::string(text.substr(start, end - start))));
    copied = end;
    touched = end_of_untouched(text, end);
  }
  scratch.append(text.substr(copied));
  return scratch;
}

}  // namespace lmemo::tokenizer
