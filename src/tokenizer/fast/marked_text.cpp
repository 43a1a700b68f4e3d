#include "tokenizer/fast/marked_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "tokenizer/fast/text_rewriter.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

constexpr char kMark = ' ';

// Marks for blanks, and perhaps one at the front.
class BlankText final : public StretchMarker {
 public:
  BlankText(std::string replacement, FrontMark front) : replacement_(std::move(replacement)), front_(front) {}

  std::string_view mark(std::string_view stretch, StretchPlace place, std::string& scratch) const override {
    size_t mark = stretch.find(replacement_);
    const bool is_marked = mark == 0 || stretch.front() == kMark;
    const bool adds_mark = gets_mark(place) && (!is_marked || front_ == FrontMark::prepended);
    if (!adds_mark && mark == std::string_view::npos) return stretch;
    ScratchWriter out(scratch, stretch.size() + 1);
    if (adds_mark) *out.at++ = kMark;
    const auto copy = [&](std::string_view part) {
      std::memcpy(out.at, part.data(), part.size());
      out.at += part.size();
    };
    size_t copied = 0;
    for (; mark != std::string_view::npos; mark = stretch.find(replacement_, copied)) {
      copy(stretch.substr(copied, mark - copied));
      *out.at++ = kMark;
      copied = mark + replacement_.size();
    }
    copy(stretch.substr(copied));
    return out.view();
  }

  bool tells_first_from_later() const override { return front_ == FrontMark::of_text; }

 private:
  bool gets_mark(StretchPlace place) const {
    if (front_ == FrontMark::of_text) return place == StretchPlace::first;
    return front_ != FrontMark::none && place != StretchPlace::continued;
  }

  const std::string replacement_;
  const FrontMark front_;
};

// Words between white space. A stretch is cut behind a newline, so that all places are the same.
class MarkedText final : public StretchMarker {
 public:
  explicit MarkedText(char32_t replacement) : replacement_(replacement) {
    const auto note = [&](char32_t c, FirstByte is_ascii) {
      const auto first = static_cast<unsigned char>(utf8_of(std::u32string_view(&c, 1))[0]);
      first_bytes_[first] = c < 0x80 ? is_ascii : kLooked;
    };
    for (const auto& [first, last, properties] : property_ranges())
      if (properties.flags & kSpace)
        for (char32_t c = first; c <= last; ++c) note(c, kBetween);
    note(replacement, kMarking);
  }

  std::string_view mark(std::string_view stretch, StretchPlace, std::string& scratch) const override {
    ScratchWriter out(scratch,
                      stretch.size() + 1);  // A mark has its room in what it stands for; but the first.
    char* to = out.at;
    const char* at = stretch.data();
    const char* const end = at + stretch.size();
    bool is_start = true;  // Of what gets a mark.
    while (at < end) {
#if defined(__x86_64__)
      if (knows_blocks_ && end - at >= 16) {
        if (const size_t copied = copy_block(at, to, is_start)) {
          at += copied;
          continue;
        }
      }
#endif
      size_t byte_count = 1;
      FirstByte kind = first_byte(at);
      if (kind == kLooked) kind = kind_of({at, static_cast<size_t>(end - at)}, byte_count);
      if (kind == kBetween) {
        is_start = true;
        at += byte_count;
        continue;
      }
      if (kind == kMarking) {
        *to++ = kMark;
        is_start = false;
        at += byte_count;
        continue;
      }
      if (is_start && *at != kMark) *to++ = kMark;
      is_start = false;
      for (; byte_count > 0; --byte_count) *to++ = *at++;
      while (at < end && first_byte(at) == kPlain) *to++ = *at++;
    }
    out.at = to;
    return out.view();
  }

 private:
#if defined(__x86_64__)
  // Copies up to 16 bytes that stay what they are: ASCII, words with one space between them, which is their mark.
  // Returns how many; none if there is anything else.
  static size_t copy_block(const char* at, char*& to, bool& is_start) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Below a space or, as a signed number, beyond ASCII.
    const int others = _mm_movemask_epi8(_mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')));
    const auto spaces = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '))));
    if (others != 0 || (spaces & (spaces << 1 | uint32_t{is_start})) != 0) return 0;
    *to = kMark;
    to += is_start;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    // Whether the last one is a mark is seen by what follows.
    is_start = spaces >> 15 != 0;
    to += is_start ? 15 : 16;
    return 16;
  }
#endif

  // Of a character: it stays, is white space that goes, is a mark; or that has to be looked at.
  enum FirstByte : uint8_t { kPlain, kBetween, kMarking, kLooked };

  FirstByte first_byte(const char* at) const { return first_bytes_[static_cast<unsigned char>(*at)]; }

  FirstByte kind_of(std::string_view rest, size_t& byte_count) const {
    byte_count = char_bytes(rest, 0);
    const char32_t c = char_at(rest, 0);
    if (c == replacement_) return kMarking;
    return has_flag(c, kSpace) ? kBetween : kPlain;
  }

  const char32_t replacement_;
  const bool knows_blocks_ = replacement_ >= 0x80;
  std::array<FirstByte, 256> first_bytes_{};
};

// Which of the next bytes are marks, up to 64.
uint64_t marks_in(const char* at, size_t byte_count) {
  uint64_t marks = 0;
#if defined(__x86_64__)
  if (byte_count >= 64) {
    for (size_t i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
      const int found = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(kMark)));
      marks |= uint64_t{static_cast<uint32_t>(found)} << 16 * i;
    }
    return marks;
  }
#endif
  for (size_t i = 0; i < std::min<size_t>(byte_count, 64); ++i) marks |= uint64_t{at[i] == kMark} << i;
  return marks;
}

class MarkSplitter final : public PieceSplitter {
 public:
  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    const size_t byte_count = static_cast<size_t>(end - begin);
    uint32_t start = 0;
    size_t count = 0;
    for (size_t block = 0; block < byte_count; block += 64) {
      uint64_t marks = marks_in(begin + block, byte_count - block);
      if (block == 0) marks &= ~uint64_t{1};
      for (; marks != 0; marks &= marks - 1) {
        const auto piece_end = static_cast<uint32_t>(block) + static_cast<uint32_t>(std::countr_zero(marks));
        pieces[count++] = {start, piece_end};
        start = piece_end;
        if (count == capacity) {
          next = begin + start;
          return count;
        }
      }
    }
    pieces[count++] = {start, static_cast<uint32_t>(byte_count)};
    next = end;
    return count;
  }
};

}  // namespace

std::unique_ptr<StretchMarker> make_marked_text(const MarkedTextOptions& options) {
  if (has_flag(options.replacement, kSpace)) return nullptr;
  if (!options.splits_at_white_space)
    return std::make_unique<BlankText>(utf8_of(std::u32string(1, options.replacement)), options.front);
  if (options.front != FrontMark::of_stretch) return nullptr;  // Words would run into each other.
  return std::make_unique<MarkedText>(options.replacement);
}

std::unique_ptr<PieceSplitter> make_mark_splitter() { return std::make_unique<MarkSplitter>(); }

}  // namespace lmemo::tokenizer
