// Metaspace, alone or behind WhitespaceSplit, and the normalizers that do the same: words are marked at their front.
//
// The mark is one byte here, a space: text between marks has none, and more pieces are short enough for the table. The
// model has to know it (TrieUnigram and SentenceBpe do).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

// Of a stretch in its text: the text begins with it; it goes on behind a cut; it comes behind an added token.
enum class StretchPlace : uint8_t { first, continued, later };

class StretchMarker {
 public:
  virtual ~StretchMarker() = default;

  // The stretch itself, or a view into `scratch`, whose size means nothing. Requires: not empty, well-formed UTF-8, not
  // in `scratch`.
  virtual std::string_view mark(std::string_view stretch, StretchPlace place, std::string& scratch) const = 0;

  // Whether `first` is another place than `later`. A stretch is `later`, too, if the normalizer dropped what the text
  // began with.
  virtual bool tells_first_from_later() const { return false; }
};

// What gets a mark at its front. Prepend puts one also before a mark, Metaspace ("always", "first") does not.
enum class FrontMark : uint8_t { none, of_text, of_stretch, prepended };

struct MarkedTextOptions {
  char32_t replacement;                // What the file marks words with.
  bool splits_at_white_space = false;  // WhitespaceSplit comes before.
  bool splits_at_marks = false;        // A piece ends before the next mark.
  FrontMark front;
};

// Null if it cannot be done this way.
std::unique_ptr<StretchMarker> make_marked_text(const MarkedTextOptions& options);

// Cuts before each mark.
std::unique_ptr<PieceSplitter> make_mark_splitter();

}  // namespace lmemo::tokenizer
