#include "tokenizer/fast/word_splitter.h"

#include <algorithm>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

enum WordClass : uint8_t { kInWord, kBetweenWords, kAlone };

const CodePointTable<uint8_t>& word_classes() {
  static const CodePointTable<uint8_t> classes = [] {
    std::vector<uint8_t> all(kCodePoints, kInWord);
    for (const auto& [first, last, properties] : property_ranges()) {
      const WordClass found = properties.flags & kSpace         ? kBetweenWords
                              : properties.flags & kPunctuation ? kAlone
                                                                : kInWord;
      std::fill(all.begin() + first, all.begin() + last + 1, found);
    }
    return CodePointTable<uint8_t>(all);
  }();
  return classes;
}

class WordSplitter final : public PieceSplitter {
 public:
  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    const auto place = [&](const char* at) { return static_cast<uint32_t>(at - begin); };
    size_t count = 0;
    const char* at = begin;
    while (at < end && count < capacity) {
      const char* const start = at;
      size_t byte_count;
      const uint8_t first = classes_.at(at, byte_count);
      at += byte_count;
      if (first == kBetweenWords) continue;
      if (first == kInWord)
        while (at < end && classes_.at(at, byte_count) == kInWord) at += byte_count;
      pieces[count++] = {place(start), place(at)};
    }
    next = at;
    return count;
  }

 private:
  const CodePointTable<uint8_t>& classes_ = word_classes();
};

}  // namespace

std::unique_ptr<PieceSplitter> make_word_splitter() { return std::make_unique<WordSplitter>(); }

}  // namespace lmemo::tokenizer
