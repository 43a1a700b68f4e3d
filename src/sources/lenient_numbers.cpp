#include "sources/lenient_numbers.h"

#include <cstddef>

namespace lmemo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t digits_at(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && is_digit(text[at + count])) ++count;
  return count;
}

// The length of the well-formed JSON number at the front; 0 if there is none.
size_t number_length(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = digits_at(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = digits_at(text, at + 1);
    if (fraction == 0) return 0;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t count = digits_at(text, exponent);
    if (count == 0) return 0;
    at = exponent + count;
  }
  return at;
}

size_t odd_number_length(std::string_view text) {
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
    if (text.starts_with(word)) return word.size();
  return number_length(text);
}

}  // namespace

bool replace_odd_numbers(std::string_view line, std::vector<char>& copy) {
  copy.clear();
  bool found = false;
  bool is_in_string = false;
  char before = ' ';
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    size_t step = 1;
    if (is_in_string) {
      if (c == '\\' && at + 1 < line.size()) step = 2;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if ((c == '-' || is_digit(c) || c == 'N' || c == 'I') &&
               std::string_view(" \t\r:,[").find(before) != std::string_view::npos) {
      // Only a whole value: 1x stays what it is, broken.
      const size_t length = odd_number_length(line.substr(at));
      const bool ends =
          at + length == line.size() ||
          (length > 0 && std::string_view(" \t\r\n,]}").find(line[at + length]) != std::string_view::npos);
      if (length > 0 && ends) {
        copy.push_back('0');
        found = true;
        before = '0';
        at += length;
        continue;
      }
    }
    copy.insert(copy.end(), line.begin() + static_cast<ptrdiff_t>(at),
                line.begin() + static_cast<ptrdiff_t>(at + step));
    before = c;
    at += step;
  }
  return found;
}

}  // namespace lmemo
