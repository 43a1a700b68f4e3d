#include "tokenizer/fast/digits_splitter.h"

#include <algorithm>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

class Numerics : public CodePointTable<uint8_t> {
 public:
  static const Numerics& get() {
    static const Numerics numerics;
    return numerics;
  }

 private:
  Numerics() : CodePointTable(all()) {}

  static std::vector<uint8_t> all() {
    std::vector<uint8_t> numerics(kCodePoints);
    for (const PropertyRange& range : property_ranges())
      std::fill(numerics.begin() + range.first, numerics.begin() + range.last + 1, (range.properties.flags & kNumeric) != 0);
    return numerics;
  }
};

class DigitsSplitter final : public PieceSplitter {
 public:
  explicit DigitsSplitter(std::unique_ptr<PieceSplitter> inner) : inner_(std::move(inner)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    size_t count = 0;
    const char* at = begin;
    while (at < end && count + kMinCapacity <= capacity) {
      size_t bytes;
      if (numerics_.at(at, bytes)) {
        pieces[count++] = span_of(begin, at, at + bytes);
        at += bytes;
        continue;
      }
      count += split_between(begin, at, end, pieces + count, capacity - count, at);
    }
    next = at;
    return count;
  }

 private:
  static constexpr std::ptrdiff_t kLookAhead = 16;

  static PieceSpan span_of(const char* begin, const char* from, const char* to) {
    return {static_cast<uint32_t>(from - begin), static_cast<uint32_t>(to - begin)};
  }

  // Pieces of the stretch up to the next number. That may be far away; so the inner splitter is let see what lies
  // behind, and what it makes counts if it ends well before the part in which there is no number for sure.
  size_t split_between(const char* begin, const char* at, const char* end, PieceSpan* pieces, size_t capacity,
                       const char*& next) const {
    const char* number = at;
    for (std::ptrdiff_t window = 8192;; window *= 2) {
      const char* const window_end = end - at > window ? at + window : end;
      size_t bytes;
      while (number < window_end && !numerics_.at(number, bytes)) number += bytes;
      const bool is_far = number >= window_end && window_end < end;
      const size_t count = inner_->split(at, is_far ? end : number, pieces, capacity, next);
      if (is_far && window_end - next < kLookAhead) continue;
      const auto distance = static_cast<uint32_t>(at - begin);
      for (size_t i = 0; i < count; ++i) pieces[i] = {pieces[i].begin + distance, pieces[i].end + distance};
      return count;
    }
  }

  const Numerics& numerics_ = Numerics::get();
  const std::unique_ptr<PieceSplitter> inner_;
};

}  // namespace

std::unique_ptr<PieceSplitter> make_digits_splitter(std::unique_ptr<PieceSplitter> inner) {
  return std::make_unique<DigitsSplitter>(std::move(inner));
}

}  // namespace lmemo::tokenizer
