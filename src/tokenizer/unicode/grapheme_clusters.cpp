#include "tokenizer/unicode/grapheme_clusters.h"

#include "base/utf8.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/properties.h"

#include <algorithm>

namespace lmemo::tokenizer {
namespace {

bool is_control(Grapheme c) { return c == Grapheme::cr || c == Grapheme::lf || c == Grapheme::control; }

// The rules of UAX 29 in their order; `follows_pictograph`: pictograph, marks, and then `before`, the joiner.
bool is_joined(Grapheme before, Grapheme behind, bool follows_pictograph) {
  if (before == Grapheme::cr && behind == Grapheme::lf) return true;
  if (is_control(before) || is_control(behind)) return false;
  if (before == Grapheme::hangul_l)
    if (behind == Grapheme::hangul_l || behind == Grapheme::hangul_v || behind == Grapheme::hangul_lv ||
        behind == Grapheme::hangul_lvt)
      return true;
  if (before == Grapheme::hangul_v || before == Grapheme::hangul_lv)
    if (behind == Grapheme::hangul_v || behind == Grapheme::hangul_t) return true;
  if (before == Grapheme::hangul_t || before == Grapheme::hangul_lvt)
    if (behind == Grapheme::hangul_t) return true;
  if (behind == Grapheme::joins || behind == Grapheme::zwj) return true;
  if (before == Grapheme::prepend) return true;
  return before == Grapheme::zwj && behind == Grapheme::pictograph && follows_pictograph;
}

}  // namespace

std::vector<std::string_view> grapheme_clusters(std::string_view utf8) {
  std::vector<std::string_view> clusters;
  size_t begin = 0;
  Grapheme before = Grapheme::other;
  bool follows_pictograph = false;
  for (size_t at = 0; at < utf8.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(utf8.substr(at)));
    const Grapheme behind = grapheme_of(code_points_of(utf8.substr(at, length))[0]);
    if (at > 0 && !is_joined(before, behind, follows_pictograph)) {
      clusters.push_back(utf8.substr(begin, at - begin));
      begin = at;
    }
    if (behind != Grapheme::joins && behind != Grapheme::zwj)
      follows_pictograph = behind == Grapheme::pictograph;
    before = behind;
    at += length;
  }
  if (begin < utf8.size()) clusters.push_back(utf8.substr(begin));
  return clusters;
}

}  // namespace lmemo::tokenizer
