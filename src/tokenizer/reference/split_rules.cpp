#include "tokenizer/reference/split_rules.h"

#include <algorithm>

namespace lmemo::tokenizer {
namespace {

struct Segment {
  Match where;
  bool is_delimiter;
};

// The delimiters and what lies between them.
std::vector<Segment> segments_of(const std::vector<Match>& delimiters, size_t text_length, bool is_inverted) {
  std::vector<Segment> segments;
  size_t end = 0;
  for (const Match& delimiter : delimiters) {
    if (end != delimiter.begin) segments.push_back({{end, delimiter.begin}, is_inverted});
    segments.push_back({delimiter, !is_inverted});
    end = delimiter.end;
  }
  if (end != text_length) segments.push_back({{end, text_length}, is_inverted});
  return segments;
}

}  // namespace

std::vector<Match> cuts_of(const std::vector<Match>& delimiters, size_t text_length, bool is_inverted,
                           SplitBehavior behavior) {
  std::vector<Match> cuts;
  if (text_length == 0) return cuts;
  std::vector<Segment> segments = segments_of(delimiters, text_length, is_inverted);
  const bool goes_backward = behavior == SplitBehavior::merged_with_next;
  if (goes_backward) std::reverse(segments.begin(), segments.end());

  bool after_delimiter = false;
  for (const Segment& segment : segments) {
    const bool joins = behavior == SplitBehavior::contiguous ? segment.is_delimiter == after_delimiter
                       : behavior == SplitBehavior::merged_with_previous || goes_backward
                           ? segment.is_delimiter && !after_delimiter
                           : false;
    after_delimiter = segment.is_delimiter;
    if (behavior == SplitBehavior::removed && segment.is_delimiter) continue;
    if (!joins || cuts.empty()) {
      cuts.push_back(segment.where);
    } else if (goes_backward) {
      cuts.back().begin = segment.where.begin;
    } else {
      cuts.back().end = segment.where.end;
    }
  }
  if (goes_backward) std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

std::vector<Match> characters_where(std::u32string_view text, const std::function<bool(char32_t)>& holds) {
  std::vector<Match> found;
  for (size_t at = 0; at < text.size(); ++at)
    if (holds(text[at])) found.push_back({at, at + 1});
  return found;
}

}  // namespace lmemo::tokenizer
