// A regex as steps for the matcher.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/reference/regex_syntax.h"

namespace lmemo::tokenizer {

struct RegexStep {
  enum class Op : uint8_t {
    set,     // One code point out of `set`, then the next step.
    run,     // `min` to `max` code points out of `set`, by `greed`, then the next step.
    fork,    // Continue at `target`; if that fails, at `other`.
    jump,    // Continue at `target`.
    atomic,  // The next steps up to their `accept`, in the first way that works; then `target`.
    look,    // They match here (or, negative, do not), nothing is consumed; then `target`.
    behind,  // They match from `min` code points back up to here (or do not); then `target`.
    line_begin,
    line_end,
    text_begin,
    text_end,
    word_edge,
    no_word_edge,
    accept,  // The end of the pattern, or of the part under atomic, look or behind.
  };

  Op op = Op::accept;
  RegexNode::Greed greed = RegexNode::Greed::greedy;
  bool is_negative = false;
  uint32_t set = 0;
  uint32_t min = 0, max = 0;
  uint32_t target = 0, other = 0;
};

struct RegexProgram {
  std::vector<RegexStep> steps;  // Starts at 0.
  std::vector<CodePointSet> sets;
  CodePointSet word;  // For word_edge; empty text unless it is used.
  bool may_be_empty = false;
};

Result<RegexProgram> compile_regex(RegexTree tree);

// Whether it matches without taking a character.
bool may_be_empty(const RegexNode& node);

}  // namespace lmemo::tokenizer
