#include "tokenizer/reference/regex_program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace lmemo::tokenizer {
namespace {

using Kind = RegexNode::Kind;
using Greed = RegexNode::Greed;
using Op = RegexStep::Op;

constexpr size_t kMaxSteps = 20'000;

Error refused(const std::string& what) {
  return {ErrorCode::incompatible, "regex: " + what + " is not supported"};
}

// How many code points it always matches, if that is one number.
std::optional<uint32_t> fixed_length(const RegexNode& node) {
  uint32_t sum = 0;
  switch (node.kind) {
    case Kind::set: return 1;
    case Kind::sequence:
      for (const RegexNode& child : node.children) {
        const std::optional<uint32_t> length = fixed_length(child);
        if (!length) return std::nullopt;
        sum += *length;
      }
      return sum;
    case Kind::alternation: {
      const std::optional<uint32_t> length = fixed_length(node.children[0]);
      for (const RegexNode& child : node.children)
        if (fixed_length(child) != length) return std::nullopt;
      return length;
    }
    case Kind::repeat: {
      const std::optional<uint32_t> length = fixed_length(node.children[0]);
      if (!length || node.min != node.max) return std::nullopt;
      return *length * node.min;
    }
    case Kind::atomic: return fixed_length(node.children[0]);
    default: return 0;
  }
}

class Compiler {
 public:
  Result<RegexProgram> compile(RegexTree tree) {
    LMEMO_TRY(add(tree.root));
    LMEMO_TRY(step(Op::accept));
    program_.sets = std::move(tree.sets);
    program_.word = word_set();
    program_.may_be_empty = may_be_empty(tree.root);
    return std::move(program_);
  }

 private:
  Status add(const RegexNode& node) {
    switch (node.kind) {
      case Kind::set: {
        LMEMO_TRY(step(Op::set));
        last().set = node.set;
        return {};
      }
      case Kind::sequence:
        for (const RegexNode& child : node.children) LMEMO_TRY(add(child));
        return {};
      case Kind::alternation: return add_alternation(node);
      case Kind::repeat: return add_repeat(node);
      case Kind::atomic: return add_part(Op::atomic, node.children[0], false);
      case Kind::look_ahead: return add_part(Op::look, node.children[0], node.is_negative);
      case Kind::look_behind: return add_look_behind(node);
      case Kind::line_begin: return step(Op::line_begin);
      case Kind::line_end: return step(Op::line_end);
      case Kind::text_begin: return step(Op::text_begin);
      case Kind::text_end: return step(Op::text_end);
      case Kind::word_edge: return step(Op::word_edge);
      case Kind::no_word_edge: return step(Op::no_word_edge);
    }
    return {};
  }

  Status add_alternation(const RegexNode& node) {
    std::vector<uint32_t> jumps;
    for (size_t at = 0; at < node.children.size(); ++at) {
      const bool is_last = at + 1 == node.children.size();
      const uint32_t fork = here();
      if (!is_last) LMEMO_TRY(step(Op::fork));
      LMEMO_TRY(add(node.children[at]));
      if (is_last) break;
      jumps.push_back(here());
      LMEMO_TRY(step(Op::jump));
      program_.steps[fork].target = fork + 1;
      program_.steps[fork].other = here();
    }
    for (const uint32_t jump : jumps) program_.steps[jump].target = here();
    return {};
  }

  Status add_repeat(const RegexNode& node) {
    const RegexNode& body = node.children[0];
    if (body.kind == Kind::set) {
      LMEMO_TRY(step(Op::run));
      last().set = body.set;
      last().min = node.min;
      last().max = node.max;
      last().greed = node.greed;
      return {};
    }
    if (node.greed == Greed::possessive) {
      RegexNode greedy = node;
      greedy.greed = Greed::greedy;
      return add_part(Op::atomic, greedy, false);
    }
    // Oniguruma leaves a loop after an empty round, sometimes.
    if (node.max > 1 && may_be_empty(body)) return refused("a repeat of what may be empty");
    for (uint32_t count = 0; count < node.min; ++count) LMEMO_TRY(add(body));
    if (node.max == RegexNode::kUnlimited) {
      const uint32_t fork = here();
      LMEMO_TRY(step(Op::fork));
      LMEMO_TRY(add(body));
      LMEMO_TRY(step(Op::jump));
      last().target = fork;
      set_fork(fork, node.greed);
      return {};
    }
    std::vector<uint32_t> forks;
    for (uint32_t count = node.min; count < node.max; ++count) {
      forks.push_back(here());
      LMEMO_TRY(step(Op::fork));
      LMEMO_TRY(add(body));
    }
    for (const uint32_t fork : forks) set_fork(fork, node.greed);
    return {};
  }

  // At `fork`: into the body behind it, or out to here.
  void set_fork(uint32_t fork, Greed greed) {
    RegexStep& step = program_.steps[fork];
    step.target = fork + 1;
    step.other = here();
    if (greed == Greed::lazy) std::swap(step.target, step.other);
  }

  Status add_part(Op op, const RegexNode& inner, bool is_negative) {
    const uint32_t start = here();
    LMEMO_TRY(step(op));
    LMEMO_TRY(add(inner));
    LMEMO_TRY(step(Op::accept));
    program_.steps[start].is_negative = is_negative;
    program_.steps[start].target = here();
    return {};
  }

  Status add_look_behind(const RegexNode& node) {
    const std::optional<uint32_t> length = fixed_length(node.children[0]);
    if (!length) return refused("a look-behind without a fixed length");
    const uint32_t start = here();
    LMEMO_TRY(add_part(Op::behind, node.children[0], node.is_negative));
    program_.steps[start].min = *length;
    return {};
  }

  Status step(Op op) {
    if (program_.steps.size() >= kMaxSteps) return refused("a pattern of this size (counts multiply)");
    program_.steps.emplace_back().op = op;
    return {};
  }
  RegexStep& last() { return program_.steps.back(); }
  uint32_t here() const { return static_cast<uint32_t>(program_.steps.size()); }

  RegexProgram program_;
};

}  // namespace

bool may_be_empty(const RegexNode& node) {
  switch (node.kind) {
    case Kind::set: return false;
    case Kind::sequence: return std::all_of(node.children.begin(), node.children.end(), may_be_empty);
    case Kind::alternation: return std::any_of(node.children.begin(), node.children.end(), may_be_empty);
    case Kind::repeat: return node.min == 0 || may_be_empty(node.children[0]);
    case Kind::atomic: return may_be_empty(node.children[0]);
    default: return true;
  }
}

Result<RegexProgram> compile_regex(RegexTree tree) { return Compiler().compile(std::move(tree)); }

}  // namespace lmemo::tokenizer
