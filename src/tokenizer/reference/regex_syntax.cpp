#include "tokenizer/reference/regex_syntax.h"

#include "tokenizer/reference/regex_class.h"
#include "tokenizer/reference/regex_scanner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace lmemo::tokenizer {
namespace {

using Kind = RegexNode::Kind;
using Greed = RegexNode::Greed;

constexpr int kMaxDepth = 50;
constexpr uint32_t kMaxCount = 1000;

RegexNode node_of(Kind kind) {
  RegexNode node;
  node.kind = kind;
  return node;
}

RegexNode node_around(Kind kind, RegexNode child) {
  RegexNode node = node_of(kind);
  node.children.push_back(std::move(child));
  return node;
}

struct Count {
  uint32_t min = 0, max = 0;
};

class Parser {
 public:
  explicit Parser(std::u32string_view pattern) : scan_(pattern) {}

  Result<RegexTree> parse() {
    LMEMO_ASSIGN(tree_.root, alternation(false, 0));
    if (!scan_.at_end()) return scan_.refuse("')' without '('");
    return std::move(tree_);
  }

 private:
  Result<RegexNode> alternation(bool is_caseless, int depth) {
    if (depth > kMaxDepth) return scan_.refuse("groups nested too deeply");
    RegexNode all = node_of(Kind::alternation);
    do {
      last_caseless_ = 0;
      LMEMO_ASSIGN(RegexNode one, sequence(is_caseless, depth));
      all.children.push_back(std::move(one));
    } while (scan_.take(U"|"));
    last_caseless_ = 0;
    return all.children.size() == 1 ? std::move(all.children[0]) : std::move(all);
  }

  Result<RegexNode> sequence(bool is_caseless, int depth) {
    RegexNode all = node_of(Kind::sequence);
    while (!scan_.at_end() && scan_.peek() != U'|' && scan_.peek() != U')') {
      LMEMO_ASSIGN(RegexNode one, atom(is_caseless, depth));
      LMEMO_ASSIGN(RegexNode repeated, with_repeats(std::move(one)));
      all.children.push_back(std::move(repeated));
    }
    return all.children.size() == 1 ? std::move(all.children[0]) : std::move(all);
  }

  Result<RegexNode> atom(bool is_caseless, int depth) {
    const char32_t c = scan_.peek();
    switch (c) {
      case U'(': return group(is_caseless, depth);
      case U'[': {
        LMEMO_ASSIGN(CodePointSet set, parse_class(scan_, is_caseless));
        last_caseless_ = 0;
        return set_node(std::move(set));
      }
      case U'^': return scan_.skip(1), node_of(Kind::line_begin);
      case U'$': return scan_.skip(1), node_of(Kind::line_end);
      case U'.': {
        scan_.skip(1);
        CodePointSet set;
        set.add(U'\n');
        set.negate();
        return set_node(std::move(set));
      }
      case U'*':
      case U'+':
      case U'?': return scan_.refuse("a repeat of nothing");
      case U'{': return scan_.refuse("an unescaped '{' that is no count");
      case U'\\': return escape(is_caseless);
      default: return scan_.skip(1), literal(c, is_caseless);
    }
  }

  Result<RegexNode> escape(bool is_caseless) {
    static constexpr std::pair<char32_t, Kind> kAssertions[] = {{U'A', Kind::text_begin},
                                                                {U'z', Kind::text_end},
                                                                {U'b', Kind::word_edge},
                                                                {U'B', Kind::no_word_edge}};
    for (const auto& [letter, kind] : kAssertions)
      if (scan_.peek(1) == letter) return scan_.skip(2), node_of(kind);
    const size_t start = scan_.position();
    LMEMO_ASSIGN(ClassItem item, parse_escape(scan_));
    if (!item.set) return literal(item.code_point, is_caseless);
    last_caseless_ = 0;
    if (is_caseless && !is_caseless_plain(*item.set))
      return scan_.refuse_at(start, "a class of letters inside (?i:");
    return set_node(std::move(*item.set));
  }

  Result<RegexNode> literal(char32_t c, bool is_caseless) {
    CodePointSet set;
    if (!is_caseless) {
      set.add(c);
      return set_node(std::move(set));
    }
    if (c > 0x7F) return scan_.refuse_before("a character beyond ASCII inside (?i:");
    // Oniguruma lets ß stand for ss, ﬁ for fi and so on: pairs that have such a form are refused.
    const char32_t lower = c >= U'A' && c <= U'Z' ? c | 0x20 : c;
    for (const std::u32string_view pair : {U"ss", U"st", U"ff", U"fi", U"fl"})
      if (last_caseless_ == pair[0] && lower == pair[1])
        return scan_.refuse_before("a ligature's letters inside (?i:");
    last_caseless_ = lower;
    return set_node(caseless_set(c));
  }

  Result<RegexNode> group(bool is_caseless, int depth) {
    struct Opening {
      std::u32string_view text;
      std::optional<Kind> kind;
      bool is_negative = false, is_caseless = false;
    };
    static constexpr Opening kOpenings[] = {
        {U"(?:", {}},
        {U"(?i:", {}, false, true},
        {U"(?=", Kind::look_ahead},
        {U"(?!", Kind::look_ahead, true},
        {U"(?<=", Kind::look_behind},
        {U"(?<!", Kind::look_behind, true},
        {U"(?>", Kind::atomic},
    };
    for (const Opening& opening : kOpenings) {
      if (!scan_.take(opening.text)) continue;
      LMEMO_ASSIGN(RegexNode inner, group_rest(is_caseless || opening.is_caseless, depth));
      if (!opening.kind) return inner;
      RegexNode node = node_around(*opening.kind, std::move(inner));
      node.is_negative = opening.is_negative;
      return node;
    }
    if (scan_.peek(1) == U'?' || scan_.peek(1) == U'*') return scan_.refuse("this kind of group");
    scan_.skip(1);  // Captures are never asked for, so a plain group only groups.
    return group_rest(is_caseless, depth);
  }

  Result<RegexNode> group_rest(bool is_caseless, int depth) {
    LMEMO_ASSIGN(RegexNode inner, alternation(is_caseless, depth + 1));
    if (!scan_.take(U")")) return scan_.refuse("a group without its end");
    return inner;
  }

  // Greedy *, lazy *?, possessive *+. After a count they differ: {2,3}? is lazy, but {2}? is (…{2})? and {2,3}+ is
  // (…{2,3})+, as Oniguruma reads them.
  Result<RegexNode> with_repeats(RegexNode body) {
    Count count;
    bool is_braced = false;
    const size_t start = scan_.position();
    if (scan_.take(U"*")) {
      count = {0, RegexNode::kUnlimited};
    } else if (scan_.take(U"+")) {
      count = {1, RegexNode::kUnlimited};
    } else if (scan_.take(U"?")) {
      count = {0, 1};
    } else if (scan_.peek() == U'{') {
      LMEMO_ASSIGN(count, braced_count());
      is_braced = true;
    } else {
      return body;
    }
    if (body.kind >= Kind::look_ahead) return scan_.refuse_at(start, "a repeated assertion");

    RegexNode node = node_around(Kind::repeat, std::move(body));
    node.min = count.min;
    node.max = count.max;
    const bool is_exact = is_braced && count.min == count.max;
    if (scan_.peek() == U'?' && !is_exact) {
      scan_.skip(1);
      node.greed = Greed::lazy;
    } else if (scan_.peek() == U'+' && !is_braced) {
      scan_.skip(1);
      node.greed = Greed::possessive;
    } else if (is_braced && (scan_.peek() == U'?' || scan_.peek() == U'+')) {
      const bool is_optional = scan_.take(U"?");
      if (!is_optional) scan_.skip(1);
      node = node_around(Kind::repeat, std::move(node));
      node.min = is_optional ? 0 : 1;
      node.max = is_optional ? 1 : RegexNode::kUnlimited;
    }
    if (!scan_.at_end() && std::u32string_view(U"*+?{").find(scan_.peek()) != std::u32string_view::npos)
      return scan_.refuse("a repeat of a repeat");
    return node;
  }

  Result<Count> braced_count() {
    const size_t start = scan_.position();
    scan_.skip(1);
    const std::optional<uint32_t> min = number();
    const bool has_comma = scan_.take(U",");
    const std::optional<uint32_t> max = has_comma ? number() : min;
    if (!scan_.take(U"}") || (!min && !max))
      return scan_.refuse_at(start, "an unescaped '{' that is no count");
    const Count count{min.value_or(0), max.value_or(RegexNode::kUnlimited)};
    const bool is_too_large = count.min > kMaxCount || (max && *max > kMaxCount);
    if (is_too_large || count.max < count.min || count.max == 0) return scan_.refuse_at(start, "this count");
    return count;
  }

  std::optional<uint32_t> number() {
    std::optional<uint32_t> value;
    while (scan_.peek() >= U'0' && scan_.peek() <= U'9') {
      value = std::min(value.value_or(0) * 10 + static_cast<uint32_t>(scan_.peek() - U'0'), 100 * kMaxCount);
      scan_.skip(1);
    }
    return value;
  }

  RegexNode set_node(CodePointSet set) {
    RegexNode node = node_of(Kind::set);
    for (; node.set < tree_.sets.size(); ++node.set)
      if (tree_.sets[node.set] == set) return node;
    tree_.sets.push_back(std::move(set));
    return node;
  }

  RegexScanner scan_;
  RegexTree tree_;
  char32_t last_caseless_ = 0;  // The ASCII character before this one inside (?i:, in lower case.
};

}  // namespace

Result<RegexTree> parse_regex(std::u32string_view pattern) { return Parser(pattern).parse(); }

}  // namespace lmemo::tokenizer
