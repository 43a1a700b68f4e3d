#include "tokenizer/fast/deepseek_splitter.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/fast/split_walker.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

constexpr const char* kRegexes[] = {
    R"(\p{N}{1,3})",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
     " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
};

enum Class : uint8_t {
  kLetterC = 1,
  kMarkC = 2,
  kNumberC = 4,
  kSymbolC = 8,  // \p{P} and \p{S}
  kSpaceC = 16,
  kNewlineC = 32,
  kEastC = 64,  // What the second Split sets apart.
  kEnd = 128,   // No character of this stretch.
};

class Classes : public CodePointTable<uint8_t> {
 public:
  static const Classes& get() {
    static const Classes classes;
    return classes;
  }

 private:
  Classes() : CodePointTable(all()) {}

  static std::vector<uint8_t> all() {
    std::vector<uint8_t> classes(kCodePoints);
    for (const PropertyRange& range : property_ranges())
      std::fill(classes.begin() + range.first, classes.begin() + range.last + 1, class_of(range.properties));
    for (const char newline : {'\r', '\n'}) classes[static_cast<size_t>(newline)] |= kNewlineC;
    for (size_t c = 0x4E00; c <= 0x9FA5; ++c) classes[c] |= kEastC;
    for (size_t c = 0x3040; c <= 0x30FF; ++c) classes[c] |= kEastC;
    return classes;
  }

  static uint8_t class_of(const CharacterProperties& properties) {
    const auto category = static_cast<Category>(properties.category);
    const auto is_between = [&](Category first, Category last) {
      return category >= first && category <= last;
    };
    uint8_t found = 0;
    if (is_between(Category::lu, Category::lo)) found |= kLetterC;
    if (is_between(Category::mn, Category::me)) found |= kMarkC;
    if (is_between(Category::nd, Category::no)) found |= kNumberC;
    if (is_between(Category::pc, Category::so)) found |= kSymbolC;
    if (properties.flags & kRegexSpace) found |= kSpaceC;
    return found;
  }
};

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// One piece at a time. The stretches that the first two Splits leave are texts of their own to the third.
class Walker {
 public:
  const char* piece_end(const char* at, const char* end) const {
    const char* const first = at;
    const uint8_t found = classes_.at(at, bytes_);
    if (found & kNumberC) return numbers_end(at, end);
    const Stretch stretch{end, static_cast<uint8_t>(found & kEastC)};
    if (const char* const matched = match_end(at, stretch)) return matched;
    // What no alternative takes stays together up to the next match.
    do at += size_at(at);
    while (class_at(at, stretch) != kEnd && !match_end(at, stretch));
    return at > first ? at : end;
  }

 private:
  struct Stretch {
    const char* end;
    uint8_t east;  // kEastC or 0: what all of it is.
  };

  size_t size_at(const char* at) const {
    size_t bytes;
    classes_.at(at, bytes);
    return bytes;
  }

  // kEnd behind the last character of the stretch.
  uint8_t class_at(const char* at, const Stretch& stretch) const {
    if (at >= stretch.end) return kEnd;
    const uint8_t found = classes_.at(at, bytes_);
    return (found & kNumberC) || (found & kEastC) != stretch.east ? static_cast<uint8_t>(kEnd) : found;
  }

  const char* numbers_end(const char* at, const char* end) const {
    for (int count = 0; count < 3 && at < end; ++count) {
      size_t bytes;
      if (!(classes_.at(at, bytes) & kNumberC)) break;
      at += bytes;
    }
    return at;
  }

  const char* run_end(const char* at, const Stretch& stretch, uint8_t classes) const {
    for (;;) {
      const uint8_t found = class_at(at, stretch);
      if (found == kEnd || !(found & classes)) return at;
      at += bytes_;
    }
  }

  // The end of the match that begins here, or null.
  const char* match_end(const char* at, const Stretch& stretch) const {
    const uint8_t first = class_at(at, stretch);
    const char* const second = at + bytes_;
    const uint8_t next = class_at(second, stretch);
    const bool next_counts = next != kEnd;
    if ((first & kSymbolC) && static_cast<unsigned char>(*at) < 0x80 && next_counts &&
        is_ascii_letter(*second)) {
      const char* word = second;
      while (word < stretch.end && is_ascii_letter(*word)) ++word;
      return word;
    }
    if (first & (kLetterC | kMarkC)) return run_end(second, stretch, kLetterC | kMarkC);
    const bool is_prefix = !(first & (kNewlineC | kSymbolC));
    if (is_prefix && next_counts && (next & (kLetterC | kMarkC)))
      return run_end(second, stretch, kLetterC | kMarkC);
    if (first & kSymbolC) return symbols_end(at, stretch);
    if (*at == ' ' && next_counts && (next & kSymbolC)) return symbols_end(second, stretch);
    return first & kSpaceC ? space_end(at, stretch) : nullptr;
  }

  const char* symbols_end(const char* at, const Stretch& stretch) const {
    return run_end(run_end(at, stretch, kSymbolC), stretch, kNewlineC);
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+
  const char* space_end(const char* at, const Stretch& stretch) const {
    const char* newline_end = nullptr;
    const char* last = at;
    const char* run = at;
    uint8_t found;
    while ((found = class_at(run, stretch)) != kEnd && (found & kSpaceC)) {
      last = run;
      run += bytes_;
      if (found & kNewlineC) newline_end = run;
    }
    if (newline_end) return newline_end;
    return found == kEnd || last == at ? run : last;
  }

  const Classes& classes_ = Classes::get();
  mutable size_t bytes_ = 0;  // Of the character that was looked at last.
};

class DeepSeekSplitter final : public PieceSplitter {
 public:
  explicit DeepSeekSplitter(std::shared_ptr<const CharBorders> borders) : borders_(std::move(borders)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    return split_by(Walker(), borders_.get(), begin, end, pieces, capacity, next);
  }

 private:
  const std::shared_ptr<const CharBorders> borders_;
};

}  // namespace

bool is_deepseek_split(const nlohmann::json& steps) {
  if (steps.size() != std::size(kRegexes) + 1) return false;
  for (size_t i = 0; i < std::size(kRegexes); ++i) {
    const nlohmann::json expected = {{"type", "Split"},
                                     {"pattern", {{"Regex", kRegexes[i]}}},
                                     {"behavior", "Isolated"},
                                     {"invert", false}};
    if (steps[i] != expected) return false;
  }
  return true;
}

std::unique_ptr<PieceSplitter> make_deepseek_splitter(std::shared_ptr<const CharBorders> borders) {
  return std::make_unique<DeepSeekSplitter>(std::move(borders));
}

}  // namespace lmemo::tokenizer
