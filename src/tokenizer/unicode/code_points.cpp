#include "tokenizer/unicode/code_points.h"

#include "base/utf8.h"

namespace lmemo::tokenizer {

std::u32string code_points_of(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  while (!utf8.empty()) {
    const auto byte = [&](size_t at) { return static_cast<char32_t>(static_cast<unsigned char>(utf8[at])); };
    const auto tail = [&](size_t at) { return byte(at) & 0x3F; };
    const size_t length = utf8_length(utf8);
    switch (length) {
      case 1: out += byte(0); break;
      case 2: out += (byte(0) & 0x1F) << 6 | tail(1); break;
      case 3: out += (byte(0) & 0x0F) << 12 | tail(1) << 6 | tail(2); break;
      case 4: out += (byte(0) & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3); break;
      default: out += U'\uFFFD';
    }
    utf8.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string utf8_of(std::u32string_view code_points) {
  std::string out;
  out.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(out, c);
  return out;
}

}  // namespace lmemo::tokenizer
