#include "base/utf8.h"

namespace lmemo {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const auto follows = [&](size_t at) { return (byte(at) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool is_overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool is_surrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !is_overlong && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool is_overlong = first == 0xF0 && byte(1) < 0x90;
    const bool is_too_large = first == 0xF4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !is_overlong && !is_too_large ? 4 : 0;
  }
  return 0;
}

bool append_utf8(std::string& text, uint32_t code_point) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto tail = [&](uint32_t shift) { add(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) return false;
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    add(0xE0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    add(0xF0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return true;
}

}  // namespace lmemo
