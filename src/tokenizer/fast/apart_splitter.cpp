#include "tokenizer/fast/apart_splitter.h"

#include <algorithm>

#include "tokenizer/fast/code_point_table.h"

namespace lmemo::tokenizer {
namespace {

// Whether a character has the flag.
CodePointTable<uint8_t> table_of(CharacterFlag flag) {
  std::vector<uint8_t> has_flag(kCodePoints);
  for (const PropertyRange& range : property_ranges())
    std::fill(has_flag.begin() + range.first, has_flag.begin() + range.last + 1,
              (range.properties.flags & flag) != 0);
  return CodePointTable(has_flag);
}

class ApartSplitter final : public PieceSplitter {
 public:
  ApartSplitter(CharacterFlag flag, Apart apart, std::unique_ptr<PieceSplitter> inner)
      : has_flag_(table_of(flag)), apart_(apart), inner_(std::move(inner)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    size_t count = 0;
    const char* at = begin;
    while (at < end && count + kMinCapacity <= capacity) {
      size_t bytes;
      if (!has_flag_.at(at, bytes)) {
        count += split_between(begin, at, end, pieces + count, capacity - count, at);
        continue;
      }
      const char* const piece = at;
      at += bytes;
      while (apart_ == Apart::runs && at < end && has_flag_.at(at, bytes)) at += bytes;
      pieces[count++] = {static_cast<uint32_t>(piece - begin), static_cast<uint32_t>(at - begin)};
    }
    next = at;
    return count;
  }

 private:
  static constexpr std::ptrdiff_t kLookAhead = 16;

  // Pieces of the stretch up to the next character that is set apart. That may be far away; so the inner splitter is let see what lies
  // behind, and what it makes counts if it ends well before the part in which there is none for sure.
  size_t split_between(const char* begin, const char* at, const char* end, PieceSpan* pieces, size_t capacity,
                       const char*& next) const {
    const char* apart = at;
    for (std::ptrdiff_t window = 8192;; window *= 2) {
      const char* const window_end = end - at > window ? at + window : end;
      size_t bytes;
      while (apart < window_end && !has_flag_.at(apart, bytes)) apart += bytes;
      const bool is_far = apart >= window_end && window_end < end;
      const size_t count = inner_->split(at, is_far ? end : apart, pieces, capacity, next);
      if (is_far && window_end - next < kLookAhead) continue;
      const auto distance = static_cast<uint32_t>(at - begin);
      for (size_t i = 0; i < count; ++i) pieces[i] = {pieces[i].begin + distance, pieces[i].end + distance};
      return count;
    }
  }

  const CodePointTable<uint8_t> has_flag_;
  const Apart apart_;
  const std::unique_ptr<PieceSplitter> inner_;
};

}  // namespace

std::unique_ptr<PieceSplitter> make_apart_splitter(CharacterFlag flag, Apart apart,
                                                   std::unique_ptr<PieceSplitter> inner) {
  return std::make_unique<ApartSplitter>(flag, apart, std::move(inner));
}

}  // namespace lmemo::tokenizer
