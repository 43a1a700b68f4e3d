#include "tokenizer/reference/regex.h"

#include "tokenizer/unicode/code_points.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

namespace lmemo::tokenizer {
namespace {

using Op = RegexStep::Op;
using Greed = RegexNode::Greed;

class Matcher {
 public:
  Matcher(const RegexProgram& program, std::u32string_view text) : program_(program), text_(text) {}

  // The end of the match that begins exactly here.
  std::optional<size_t> match_at(size_t begin) { return run(0, begin); }

 private:
  // What to try next when the present way fails. One entry serves a whole run, so that a run of ten million characters
  // costs no stack.
  struct Choice {
    enum class Kind : uint8_t { go, give_back, take_more } kind;
    uint32_t step;  // Where to continue.
    size_t at;      // Where in the text; give_back goes down to `limit`, take_more up to it.
    size_t limit;
  };

  // Patterns like (a{1,2})+b try exponentially many ways. A step and a place decide everything that follows, so what
  // failed once fails again: after more tries than a sane pattern needs, they are remembered.
  class FailedStates {
   public:
    explicit FailedStates(size_t text_length) : tries_left_(100'000 + 64 * text_length) {}

    bool knows(uint32_t step, size_t at) {
      if (tries_left_ > 0) return --tries_left_, false;
      return !states_.insert(uint64_t{step} << 40 | at).second;
    }

   private:
    size_t tries_left_;
    std::unordered_set<uint64_t> states_;
  };

  // Recurses only into atomic and look-around parts, as deep as the pattern nests them.
  std::optional<size_t> run(uint32_t first_step, size_t begin) {
    const size_t bottom = choices_.size();
    FailedStates failed(text_.size());
    uint32_t step = first_step;
    size_t at = begin;
    while (true) {
      const RegexStep& now = program_.steps[step];
      if (now.op == Op::accept) {
        choices_.resize(bottom);
        return at;
      }
      if (advance(now, step, at)) continue;
      do {
        if (!next_choice(bottom, step, at)) return std::nullopt;
      } while (failed.knows(step, at));
    }
  }

  bool advance(const RegexStep& now, uint32_t& step, size_t& at) {
    switch (now.op) {
      case Op::set:
        if (!accepts(now.set, at)) return false;
        ++at;
        return ++step, true;
      case Op::run: return take_run(now, step, at);
      case Op::fork:
        choices_.push_back({Choice::Kind::go, now.other, at, 0});
        step = now.target;
        return true;
      case Op::jump: step = now.target; return true;
      case Op::atomic: {
        const std::optional<size_t> end = run(step + 1, at);
        if (!end) return false;
        at = *end;
        step = now.target;
        return true;
      }
      case Op::look: {
        if (run(step + 1, at).has_value() == now.is_negative) return false;
        step = now.target;
        return true;
      }
      case Op::behind: {
        const bool matches = at >= now.min && run(step + 1, at - now.min).has_value();
        if (matches == now.is_negative) return false;
        step = now.target;
        return true;
      }
      default: return holds(now.op, at) && (++step, true);
    }
  }

  bool take_run(const RegexStep& now, uint32_t& step, size_t& at) {
    const size_t left = text_.size() - at;
    const size_t longest = at + std::min<size_t>(left, now.max);
    const size_t shortest = at + now.min;
    size_t end = at;
    const size_t wanted = now.greed == Greed::lazy ? std::min(shortest, longest) : longest;
    while (end < wanted && accepts(now.set, end)) ++end;
    if (end < shortest) return false;
    ++step;
    at = end;
    if (now.greed == Greed::greedy && end > shortest)
      choices_.push_back({Choice::Kind::give_back, step, end, shortest});
    else if (now.greed == Greed::lazy && end < longest)
      choices_.push_back({Choice::Kind::take_more, step, end, longest});
    return true;
  }

  bool next_choice(size_t bottom, uint32_t& step, size_t& at) {
    while (choices_.size() > bottom) {
      Choice& choice = choices_.back();
      step = choice.step;
      switch (choice.kind) {
        case Choice::Kind::go:
          at = choice.at;
          choices_.pop_back();
          return true;
        case Choice::Kind::give_back:
          at = --choice.at;
          if (choice.at == choice.limit) choices_.pop_back();
          return true;
        case Choice::Kind::take_more:
          if (!accepts(program_.steps[step - 1].set, choice.at)) break;
          at = ++choice.at;
          if (choice.at == choice.limit) choices_.pop_back();
          return true;
      }
      choices_.pop_back();
    }
    return false;
  }

  // As Oniguruma has them: lines end at \n only, and no line begins behind the last \n of the text.
  bool holds(Op assertion, size_t at) const {
    const bool is_begin = at == 0, is_end = at == text_.size();
    const bool after_newline = !is_begin && text_[at - 1] == U'\n';
    switch (assertion) {
      case Op::line_begin: return is_begin || (after_newline && !is_end);
      case Op::line_end: return is_end || text_[at] == U'\n';
      case Op::text_begin: return is_begin;
      case Op::text_end: return is_end;
      default: break;
    }
    const bool word_before = !is_begin && program_.word.contains(text_[at - 1]);
    const bool word_behind = !is_end && program_.word.contains(text_[at]);
    return (word_before != word_behind) == (assertion == Op::word_edge);
  }

  bool accepts(uint32_t set, size_t at) const {
    return at < text_.size() && program_.sets[set].contains(text_[at]);
  }

  const RegexProgram& program_;
  std::u32string_view text_;
  std::vector<Choice> choices_;
};

}  // namespace

Result<Regex> Regex::compile(std::string_view utf8_pattern) {
  const std::u32string pattern = code_points_of(utf8_pattern);
  LMEMO_ASSIGN(RegexTree tree, parse_regex(pattern));
  LMEMO_ASSIGN(RegexProgram program, compile_regex(std::move(tree)));
  return Regex(std::move(program));
}

Regex Regex::literal(std::string_view utf8_text) {
  RegexProgram program;
  for (const char32_t c : code_points_of(utf8_text)) {
    RegexStep& step = program.steps.emplace_back();
    step.op = Op::set;
    step.set = static_cast<uint32_t>(program.sets.size());
    program.sets.emplace_back().add(c);
  }
  program.steps.emplace_back().op = Op::accept;
  program.may_be_empty = utf8_text.empty();
  return Regex(std::move(program));
}

std::vector<Match> Regex::find_all(std::u32string_view text) const {
  std::vector<Match> matches;
  Matcher matcher(program_, text);
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const std::optional<size_t> end = matcher.match_at(from);
    const bool is_empty_again = end == from && last_end == from;
    if (!end || is_empty_again) {
      ++from;
      continue;
    }
    matches.push_back({from, *end});
    last_end = *end;
    from = *end;
  }
  return matches;
}

}  // namespace lmemo::tokenizer
