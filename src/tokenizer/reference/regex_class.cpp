#include "tokenizer/reference/regex_class.h"

#include <string>
#include <utility>

namespace lmemo::tokenizer {
namespace {

constexpr int kMaxClassDepth = 20;

std::optional<uint32_t> hex_value(char32_t c) {
  if (c >= U'0' && c <= U'9') return c - U'0';
  if ((c | 0x20) >= U'a' && (c | 0x20) <= U'f') return (c | 0x20) - U'a' + 10;
  return std::nullopt;
}

bool is_ascii_letter_or_digit(char32_t c) {
  return (c >= U'0' && c <= U'9') || ((c | 0x20) >= U'a' && (c | 0x20) <= U'z' && c <= U'z');
}

// \x{H…}, \xHH below 80 (above, Oniguruma means a byte) and \uHHHH.
Result<ClassItem> coded(RegexScanner& scan, size_t start) {
  const bool is_braced = scan.take(U"x{");
  const size_t digits = is_braced ? 6 : scan.peek() == U'x' ? 2 : 4;
  if (!is_braced) scan.skip(1);
  char32_t value = 0;
  size_t count = 0;
  for (; count < digits; ++count) {
    const std::optional<uint32_t> digit = hex_value(scan.peek());
    if (!digit) break;
    value = value * 16 + *digit;
    scan.skip(1);
  }
  const bool is_whole = is_braced ? count > 0 && scan.take(U"}") : count == digits;
  const bool is_byte = digits == 2 && value > 0x7F;
  if (!is_whole || is_byte || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return scan.refuse_at(start, "this code point");
  return ClassItem{std::nullopt, value};
}

// \p{L}, \P{L}, \p{^L}
Result<ClassItem> property(RegexScanner& scan, size_t start) {
  bool is_negated = scan.peek() == U'P';
  scan.skip(1);
  if (!scan.take(U"{")) return scan.refuse_at(start, "a property without {}");
  if (scan.take(U"^")) is_negated = !is_negated;
  std::string name;
  for (; !scan.at_end() && scan.peek() != U'}'; scan.skip(1))
    name += scan.peek() < 0x80 ? static_cast<char>(scan.peek()) : '?';
  if (!scan.take(U"}")) return scan.refuse_at(start, "a property without its end");
  std::optional<CodePointSet> set = property_set(name);
  if (!set) return scan.refuse_at(start, "the property '" + name + "'");
  if (is_negated) set->negate();
  return ClassItem{std::move(set), 0};
}

Result<CodePointSet> bracket(RegexScanner& scan, bool is_caseless, int depth);

// One item of a class: a nested class, an escape, or a plain character.
Result<ClassItem> class_item(RegexScanner& scan, bool is_caseless, int depth) {
  const char32_t c = scan.peek();
  if (c == U'[') {
    if (scan.peek(1) == U':') return scan.refuse("a POSIX class");
    LMEMO_ASSIGN(CodePointSet inner, bracket(scan, is_caseless, depth + 1));
    return ClassItem{std::move(inner), 0};
  }
  if (c == U'\\') {
    const char32_t letter = scan.peek(1);
    LMEMO_ASSIGN(ClassItem item, parse_escape(scan));
    // Oniguruma has two tables of \w for Latin-1: ² ³ ¹ ¼ ½ ¾ are words, but not inside brackets.
    if (letter == U'w' || letter == U'W') {
      const bool is_word = letter == U'w';
      if (is_word) item.set->negate();
      for (const char32_t number : {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE}) item.set->add(number);
      if (is_word) item.set->negate();
    }
    return item;
  }
  scan.skip(1);
  return ClassItem{std::nullopt, c};
}

Status add_to(CodePointSet& set, const RegexScanner& scan, size_t start, const ClassItem& item,
              bool is_caseless) {
  if (item.set) {
    if (is_caseless && !is_caseless_plain(*item.set))
      return scan.refuse_at(start, "a class of letters inside (?i:");
    set.add(*item.set);
  } else if (!is_caseless) {
    set.add(item.code_point);
  } else if (item.code_point > 0x7F) {
    return scan.refuse_at(start, "a character beyond ASCII inside (?i:");
  } else {
    set.add(caseless_set(item.code_point));
  }
  return {};
}

// a-z, once `first` and the hyphen are known to be there.
Status add_range_to(CodePointSet& set, RegexScanner& scan, size_t start, const ClassItem& first,
                    bool is_caseless, int depth) {
  scan.skip(1);
  LMEMO_ASSIGN(const ClassItem last, class_item(scan, is_caseless, depth));
  if (first.set || last.set || last.code_point < first.code_point) return scan.refuse_at(start, "this range");
  if (!is_caseless) {
    set.add_range(first.code_point, last.code_point);
    return {};
  }
  for (char32_t c = first.code_point; c <= last.code_point; ++c)
    LMEMO_TRY(add_to(set, scan, start, ClassItem{std::nullopt, c}, true));
  return {};
}

// The items up to ']' or '&&'.
Result<CodePointSet> class_union(RegexScanner& scan, bool is_caseless, int depth) {
  CodePointSet set;
  bool is_first = true;
  const auto ends_here = [&](size_t ahead) {
    return scan.peek(ahead) == U']' || (scan.peek(ahead) == U'&' && scan.peek(ahead + 1) == U'&');
  };
  while (!ends_here(0)) {
    if (scan.at_end()) return scan.refuse("a class without its end");
    const size_t start = scan.position();
    const bool is_hyphen = scan.peek() == U'-';
    if (is_hyphen && !is_first && !ends_here(1)) return scan.refuse("a hyphen in the middle of a class");
    LMEMO_ASSIGN(const ClassItem item, class_item(scan, is_caseless, depth));
    if (!is_hyphen && scan.peek() == U'-' && !ends_here(1)) {
      LMEMO_TRY(add_range_to(set, scan, start, item, is_caseless, depth));
    } else {
      LMEMO_TRY(add_to(set, scan, start, item, is_caseless));
    }
    is_first = false;
  }
  if (is_first) return scan.refuse("an empty class");
  return set;
}

Result<CodePointSet> bracket(RegexScanner& scan, bool is_caseless, int depth) {
  if (depth > kMaxClassDepth) return scan.refuse("classes nested too deeply");
  const size_t start = scan.position();
  scan.skip(1);
  const bool is_negated = scan.take(U"^");
  if (is_negated && is_caseless) return scan.refuse_at(start, "a negated class inside (?i:");
  LMEMO_ASSIGN(CodePointSet set, class_union(scan, is_caseless, depth));
  while (scan.take(U"&&")) {
    LMEMO_ASSIGN(const CodePointSet other, class_union(scan, is_caseless, depth));
    set.keep_only(other);
  }
  scan.skip(1);
  if (is_negated) set.negate();
  return set;
}

}  // namespace

Result<ClassItem> parse_escape(RegexScanner& scan) {
  const size_t start = scan.position();
  scan.skip(1);
  const char32_t c = scan.peek();
  const auto one_of = [&](CodePointSet set, bool is_negated) {
    scan.skip(1);
    if (is_negated) set.negate();
    return ClassItem{std::move(set), 0};
  };
  switch (c) {
    case U's':
    case U'S': return one_of(space_set(), c == U'S');
    case U'w':
    case U'W': return one_of(word_set(), c == U'W');
    case U'd':
    case U'D': return one_of(digit_set(), c == U'D');
    case U'p':
    case U'P': return property(scan, start);
    case U'x':
    case U'u': return coded(scan, start);
    default: break;
  }
  static constexpr std::pair<char32_t, char32_t> kControls[] = {
      {U'n', U'\n'}, {U'r', U'\r'}, {U't', U'\t'}, {U'v', U'\v'}, {U'f', U'\f'}, {U'a', U'\a'}, {U'e', 0x1B}};
  for (const auto& [letter, control] : kControls) {
    if (c != letter) continue;
    scan.skip(1);
    return ClassItem{std::nullopt, control};
  }
  if (scan.at_end() || is_ascii_letter_or_digit(c) || c > 0x7F) return scan.refuse_at(start, "this escape");
  scan.skip(1);
  return ClassItem{std::nullopt, c};
}

Result<CodePointSet> parse_class(RegexScanner& scan, bool is_caseless) {
  return bracket(scan, is_caseless, 0);
}

}  // namespace lmemo::tokenizer
