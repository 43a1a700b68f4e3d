#include "cli/shell_word.h"

#include <algorithm>

namespace lmemo::cli {

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(),
                                                     [&](char c) { return kPlain.find(c) != kPlain.npos; });
  if (is_plain) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

}  // namespace lmemo::cli
