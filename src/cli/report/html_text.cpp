#include "cli/report/html_text.h"

#include <algorithm>

#include "base/units.h"
#include "base/utf8.h"

namespace lmemo::cli {

namespace {

// U+202A…U+202E and U+2066…U+2069 turn around what stands beside them; U+0080…U+009F are controls.
bool misleads(std::string_view character) {
  return (character >= "\u202A" && character <= "\u202E") ||
         (character >= "\u2066" && character <= "\u2069") || (character >= "\u0080" && character <= "\u009F");
}

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0 || misleads(text.substr(0, length)))
      out += "\uFFFD";
    else if (length > 1)
      out += text.substr(0, length);
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string shortened(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return std::string(text);
  size_t kept = 0;
  while (kept < most_bytes) {
    const size_t length = std::max<size_t>(utf8_length(text.substr(kept)), 1);
    if (kept + length > most_bytes) break;
    kept += length;
  }
  return std::string(text.substr(0, kept)) + "…";
}

std::string coordinate(double value) {
  std::string text = format_fixed(value, 2);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string percent_text(double share) { return format_fixed(share * 100, 1) + " %"; }

}  // namespace lmemo::cli
