#include "tokenizer/reference/regex_set.h"

#include "tokenizer/unicode/properties.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace lmemo::tokenizer {
namespace {

// In the order of the generator: tools/unicode_probe.py, CATEGORIES and REGEX_SCRIPTS.
constexpr std::array<std::string_view, 30> kCategories = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
constexpr std::array<std::string_view, 24> kRegexScripts = {
    "Han",      "Hiragana", "Katakana", "Hangul",     "Bopomofo", "Latin",     "Greek",  "Cyrillic",
    "Armenian", "Hebrew",   "Arabic",   "Devanagari", "Bengali",  "Tamil",     "Thai",   "Lao",
    "Tibetan",  "Myanmar",  "Georgian", "Ethiopic",   "Khmer",    "Mongolian", "Common", "Inherited"};

constexpr char32_t kLastCodePoint = 0x10FFFF;

template <typename Holds>
CodePointSet set_where(Holds holds) {
  CodePointSet set;
  for (const PropertyRange& range : property_ranges())
    if (holds(range.properties)) set.add_range(range.first, range.last);
  return set;
}

}  // namespace

bool CodePointSet::contains(char32_t c) const {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                       [](char32_t at, const Range& range) { return at < range.first; });
  return behind != ranges_.begin() && c <= std::prev(behind)->last;
}

void CodePointSet::add_range(char32_t first, char32_t last) {
  const auto touches_before = [&](const Range& range) { return range.last + 1 < first; };
  const auto begin = std::find_if_not(ranges_.begin(), ranges_.end(), touches_before);
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const Range& range : other.ranges_) add_range(range.first, range.last);
}

void CodePointSet::keep_only(const CodePointSet& other) {
  std::vector<Range> both;
  for (const Range& mine : ranges_) {
    for (const Range& theirs : other.ranges_) {
      const Range common{std::max(mine.first, theirs.first), std::min(mine.last, theirs.last)};
      if (common.first <= common.last) both.push_back(common);
    }
  }
  ranges_ = std::move(both);
}

void CodePointSet::negate() {
  std::vector<Range> gaps;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) gaps.push_back({next, kLastCodePoint});
  ranges_ = std::move(gaps);
}

std::optional<CodePointSet> property_set(std::string_view name) {
  if (name == "Any") return set_where([](const CharacterProperties&) { return true; });
  if (name == "Cn" || name == "C" || name == "Cs")
    return std::nullopt;  // Whether surrogates belong was never asked.
  const auto script = std::find(kRegexScripts.begin(), kRegexScripts.end(), name);
  if (script != kRegexScripts.end()) {
    const auto number = script - kRegexScripts.begin() + 1;
    return set_where([&](const CharacterProperties& c) { return c.regex_script == number; });
  }
  if (name.empty() || name.size() > 2) return std::nullopt;

  // One letter names all categories that begin with it.
  const auto is_named = [&](std::string_view category) { return category.starts_with(name); };
  if (std::none_of(kCategories.begin(), kCategories.end(), is_named)) return std::nullopt;
  return set_where([&](const CharacterProperties& c) { return is_named(kCategories[c.category]); });
}

CodePointSet space_set() {
  return set_where([](const CharacterProperties& c) { return (c.flags & kRegexSpace) != 0; });
}

CodePointSet word_set() {
  return set_where([](const CharacterProperties& c) { return (c.flags & kRegexWord) != 0; });
}

CodePointSet digit_set() { return *property_set("Nd"); }

CodePointSet caseless_set(char32_t ascii) {
  CodePointSet set;
  set.add(ascii);
  const char32_t lower = ascii | 0x20;
  if (lower < U'a' || lower > U'z') return set;
  set.add(lower);
  set.add(lower - 0x20);
  if (lower == U'k') set.add(0x212A);  // Kelvin sign
  if (lower == U's') set.add(0x017F);  // Long s
  return set;
}

bool is_caseless_plain(const CodePointSet& set) {
  for (const CodePointSet::Range& range : set.ranges()) {
    for (char32_t c = std::max<char32_t>(range.first, 0x80); c <= range.last; ++c)
      if (category_of(c) != Category::nd && !has_flag(c, kRegexSpace)) return false;
  }
  return true;
}

}  // namespace lmemo::tokenizer
