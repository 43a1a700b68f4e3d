#include "tokenizer/fast/regex_splitter.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/fast/split_walker.h"
#include "tokenizer/reference/regex_program.h"
#include "tokenizer/unicode/code_points.h"

namespace lmemo::tokenizer {
namespace {

using Op = RegexStep::Op;
using Greed = RegexNode::Greed;
using SetMask = uint32_t;  // A bit for each set of the pattern that a character is in.

constexpr size_t kMaxSets = 31;
constexpr SetMask kAnything = SetMask{1} << kMaxSets;  // In what may begin a step: any character, or the end.

// What the text from a step on may begin with: the sets of which the next character is in one.
SetMask first_of(const std::vector<RegexStep>& steps, uint32_t step, int depth = 0) {
  if (depth > 100) return kAnything;
  const RegexStep& now = steps[step];
  switch (now.op) {
    case Op::set: return SetMask{1} << now.set;
    case Op::run: return SetMask{1} << now.set | (now.min > 0 ? 0 : first_of(steps, step + 1, depth + 1));
    case Op::fork: return first_of(steps, now.target, depth + 1) | first_of(steps, now.other, depth + 1);
    case Op::jump: return first_of(steps, now.target, depth + 1);
    default: return kAnything;
  }
}

// A step, and for a fork what its two ways may begin with, so that most are not even tried.
struct FastStep : RegexStep {
  SetMask target_first = kAnything, other_first = kAnything;
};

std::vector<FastStep> fast_steps_of(const std::vector<RegexStep>& steps) {
  std::vector<FastStep> made;
  for (const RegexStep& step : steps) {
    FastStep& now = made.emplace_back();
    static_cast<RegexStep&>(now) = step;
    if (step.op != Op::fork) continue;
    now.target_first = first_of(steps, step.target);
    now.other_first = first_of(steps, step.other);
  }
  return made;
}

CodePointTable<SetMask> masks_of(const std::vector<CodePointSet>& sets) {
  std::vector<SetMask> masks(kCodePoints);
  for (size_t set = 0; set < sets.size(); ++set)
    for (const auto& [first, last] : sets[set].ranges())
      for (char32_t c = first; c <= last && c < kCodePoints; ++c) masks[c] |= SetMask{1} << set;
  return CodePointTable(masks);
}

bool looks_back(const RegexProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const RegexStep& step) {
    return step.op == Op::behind || step.op == Op::line_begin || step.op == Op::text_begin ||
           step.op == Op::word_edge || step.op == Op::no_word_edge;
  });
}

const char* before(const char* at) {
  do --at;
  while ((static_cast<unsigned char>(*at) & 0xC0) == 0x80);
  return at;
}

// Matches in one stretch of text, as the reference's Matcher does it.
class Matcher {
 public:
  Matcher(const std::vector<FastStep>& steps, const CodePointTable<SetMask>& masks, const char* end)
      : steps_(steps), masks_(masks), end_(end) {}

  // Where the match that begins here ends; null if there is none.
  const char* match_end(const char* begin) { return run(0, begin); }

  size_t bytes_at(const char* at) const {
    size_t bytes;
    masks_.at(at, bytes);
    return bytes;
  }

 private:
  // What to try next when the present way fails.
  struct Choice {
    enum class Kind : uint8_t { go, give_back, take_more } kind;
    uint32_t step;   // Where to continue.
    const char* at;  // Where in the text; give_back goes down to `limit`,
    const char* limit;
    uint32_t left = 0;  // take_more takes so many more.
  };

  // Patterns like (a{1,2})+b try exponentially many ways. A step and a place decide everything that follows, so what
  // failed once fails again: after more tries than a sane pattern needs, they are remembered.
  class FailedStates {
   public:
    bool knows(uint32_t step, const char* at, const char* end) {
      if (tries_left_ > 0) return --tries_left_, false;
      return !states_.insert(uint64_t{step} << 40 | static_cast<uint64_t>(end - at)).second;
    }

   private:
    size_t tries_left_ = 100'000;
    std::unordered_set<uint64_t> states_;
  };

  // The steps up to their `accept`; where they end.
  const char* run(uint32_t step, const char* at) {
    const size_t bottom = choices_.size();
    FailedStates failed;
    while (true) {
      const FastStep& now = steps_[step];
      if (now.op == Op::accept) {
        choices_.resize(bottom);
        return at;
      }
      if (advance(now, step, at)) continue;
      do {
        if (!next_choice(bottom, step, at)) return nullptr;
      } while (failed.knows(step, at, end_));
    }
  }

  bool advance(const FastStep& now, uint32_t& step, const char*& at) {
    switch (now.op) {
      case Op::set: {
        size_t bytes;
        if (at == end_ || !accepts(now.set, at, bytes)) return false;
        at += bytes;
        return ++step, true;
      }
      case Op::run: return take_run(now, step, at);
      case Op::fork: {
        size_t bytes;
        const SetMask here = kAnything | (at == end_ ? 0 : masks_.at(at, bytes));
        const bool may_be_target = (here & now.target_first) != 0,
                   may_be_other = (here & now.other_first) != 0;
        if (may_be_target && may_be_other) choices_.push_back({Choice::Kind::go, now.other, at, at});
        step = may_be_target ? now.target : now.other;
        return may_be_target || may_be_other;
      }
      case Op::jump: step = now.target; return true;
      case Op::atomic: {
        const char* const part_end = run(step + 1, at);
        if (part_end == nullptr) return false;
        at = part_end;
        step = now.target;
        return true;
      }
      case Op::look:
        if ((run(step + 1, at) != nullptr) == now.is_negative) return false;
        step = now.target;
        return true;
      case Op::line_end: return (at == end_ || *at == '\n') && (++step, true);
      case Op::text_end: return at == end_ && (++step, true);
      default: return false;  // looks_back() has refused them.
    }
  }

  bool take_run(const RegexStep& now, uint32_t& step, const char*& at) {
    const uint32_t wanted = now.greed == Greed::lazy ? now.min : now.max;
    const char* shortest = at;
    uint32_t count = 0;
    for (size_t bytes; count < wanted && at < end_ && accepts(now.set, at, bytes); ++count) {
      at += bytes;
      if (count < now.min) shortest = at;
    }
    if (count < now.min) return false;
    ++step;
    if (now.greed == Greed::greedy && at > shortest)
      choices_.push_back({Choice::Kind::give_back, step, at, shortest});
    else if (now.greed == Greed::lazy && count < now.max)
      choices_.push_back({Choice::Kind::take_more, step, at, at, now.max - count});
    return true;
  }

  bool next_choice(size_t bottom, uint32_t& step, const char*& at) {
    while (choices_.size() > bottom) {
      Choice& choice = choices_.back();
      step = choice.step;
      switch (choice.kind) {
        case Choice::Kind::go:
          at = choice.at;
          choices_.pop_back();
          return true;
        case Choice::Kind::give_back:
          at = choice.at = before(choice.at);
          if (choice.at == choice.limit) choices_.pop_back();
          return true;
        case Choice::Kind::take_more: {
          size_t bytes;
          if (choice.at == end_ || !accepts(steps_[step - 1].set, choice.at, bytes)) break;
          at = choice.at += bytes;
          if (--choice.left == 0) choices_.pop_back();
          return true;
        }
      }
      choices_.pop_back();
    }
    return false;
  }

  bool accepts(uint32_t set, const char* at, size_t& bytes) const { return masks_.at(at, bytes) >> set & 1; }

  const std::vector<FastStep>& steps_;
  const CodePointTable<SetMask>& masks_;
  const char* const end_;
  std::vector<Choice> choices_;
};

class RegexSplitter final : public PieceSplitter {
 public:
  RegexSplitter(const RegexProgram& program, std::shared_ptr<const CharBorders> borders)
      : steps_(fast_steps_of(program.steps)), masks_(masks_of(program.sets)), borders_(std::move(borders)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    Matcher matcher(steps_, masks_, end);
    size_t count = 0;
    const auto add = [&](const char* piece_end) {
      const CharBorders* const borders = is_worth_cutting(next, piece_end) ? borders_.get() : nullptr;
      const size_t added =
          add_pieces(begin, next, piece_end, borders, pieces + count, capacity - count, count == 0);
      count += added;
      if (added > 0) next = piece_end;
      return added > 0 && count < capacity;
    };
    next = begin;
    while (next < end) {
      const char* match = next;
      const char* match_end = nullptr;
      while (match < end && (match_end = matcher.match_end(match)) == nullptr)
        match += matcher.bytes_at(match);
      if (match > next && !add(match)) break;
      if (match_end != nullptr && !add(match_end)) break;
    }
    return count;
  }

 private:
  const std::vector<FastStep> steps_;
  const CodePointTable<SetMask> masks_;
  const std::shared_ptr<const CharBorders> borders_;
};

}  // namespace

std::unique_ptr<PieceSplitter> make_regex_splitter(std::string_view utf8_pattern,
                                                   std::shared_ptr<const CharBorders> borders) {
  Result<RegexTree> tree = parse_regex(code_points_of(utf8_pattern));
  if (!tree.ok() || may_be_empty(tree->root) || tree->sets.size() > kMaxSets) return nullptr;
  Result<RegexProgram> program = compile_regex(std::move(tree).value());
  if (!program.ok() || looks_back(*program)) return nullptr;
  return std::make_unique<RegexSplitter>(*program, std::move(borders));
}

}  // namespace lmemo::tokenizer
