// A regex as a tree. The grammar is the part of Oniguruma's (the engine behind HuggingFace's Split and Replace) that
// tokenizers use; the rest is refused by name and position, never guessed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lmemo/result.h"
#include "tokenizer/reference/regex_set.h"

namespace lmemo::tokenizer {

struct RegexNode {
  enum class Kind : uint8_t {
    set,          // One code point out of sets[set].
    sequence,     // All children, one after the other; none: matches the empty text.
    alternation,  // The first child that leads to a match.
    repeat,       // children[0], min to max times.
    atomic,       // children[0]; once matched, not tried in another way.
    look_ahead,   // children[0] matches here, or does not (is_negative).
    look_behind,  // children[0] matches up to here, or does not.
    line_begin,
    line_end,
    text_begin,
    text_end,
    word_edge,
    no_word_edge,
  };
  enum class Greed : uint8_t { greedy, lazy, possessive };
  static constexpr uint32_t kUnlimited = UINT32_MAX;

  Kind kind = Kind::sequence;
  Greed greed = Greed::greedy;
  bool is_negative = false;
  uint32_t set = 0;
  uint32_t min = 0, max = 0;
  std::vector<RegexNode> children;
};

struct RegexTree {
  RegexNode root;
  std::vector<CodePointSet> sets;
};

// The position in an error counts characters from 0.
Result<RegexTree> parse_regex(std::u32string_view pattern);

}  // namespace lmemo::tokenizer
