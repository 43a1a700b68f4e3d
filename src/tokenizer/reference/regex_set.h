// A set of code points: what one step of a regex accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

class CodePointSet {
 public:
  CodePointSet() = default;

  bool contains(char32_t c) const;
  bool operator==(const CodePointSet&) const = default;

  void add(char32_t c) { add_range(c, c); }
  void add_range(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  void keep_only(const CodePointSet& other);
  void negate();

  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;  // Ascending, with a gap between any two.
};

// \p{NAME} as the split regexes of HuggingFace have it: general categories and some scripts. nullopt: not known here.
std::optional<CodePointSet> property_set(std::string_view name);

CodePointSet space_set();  // \s
CodePointSet word_set();   // \w
CodePointSet digit_set();  // \d

// What (?i:x) accepts for an ASCII character: both cases, and the Kelvin sign and the long s.
CodePointSet caseless_set(char32_t ascii);

// False if caselessness could reach beyond ASCII letters from here (é, ß, Cyrillic …).
bool is_caseless_plain(const CodePointSet& set);

}  // namespace lmemo::tokenizer
