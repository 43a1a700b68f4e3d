// ASCII, 64 bytes at a time: one mask for each class of characters, and from them one for all starts of pieces.
// A block always begins with a piece, so nothing is carried over; what is not certain at its end is looked at again in
// the next one. Letters and symbols beyond ASCII are looked up one by one and stand in the masks with all their bytes;
// words with long ones are cut at free borders on the way. A number or a blank beyond ASCII is the walker's, as is a
// piece longer than a block; and where case counts, letters beyond ASCII that have one.
#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tokenizer/fast/split_walker.h"

namespace lmemo::tokenizer {
namespace {

constexpr uint64_t low_bits(size_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

struct Masks {
  uint64_t letter, upper, digit, space, newline, blank /* U+0020 */, apostrophe, slash, other_bytes;
};

inline uint64_t mask_of(__m256i low, __m256i high) {
  return static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
         static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
}

// Characters beyond ASCII in a block.
struct WideChars {
  uint64_t letters = 0;         // All their bytes.
  uint64_t symbols[3] = {};     // Of two, three and four bytes: their first bytes.
  uint64_t long_chars[2] = {};  // Of three and four bytes, whatever they are: their first bytes.
  uint64_t inner_bytes = 0;     // All but first bytes, of any character.

  bool has_long() const { return (long_chars[0] | long_chars[1]) != 0; }
};

struct Half {
  __m256i bytes;

  __m256i equal(char c) const { return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c)); }
  static __m256i between(__m256i bytes, char first, char last) {
    return _mm256_and_si256(_mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(static_cast<char>(first - 1))),
                            _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(last + 1)), bytes));
  }
  __m256i letter() const { return between(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), 'a', 'z'); }
  __m256i upper() const { return between(bytes, 'A', 'Z'); }
  __m256i digit() const { return between(bytes, '0', '9'); }
  __m256i space() const { return _mm256_or_si256(between(bytes, '\t', '\r'), equal(' ')); }
  __m256i newline() const { return _mm256_or_si256(equal('\n'), equal('\r')); }
};

inline Half half_at(const char* block) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block))};
}

template <bool kNeedsCase, bool kNeedsSlash>
inline Masks masks_of(const char* block) {
  const Half low = half_at(block), high = half_at(block + 32);
  Masks masks;
  masks.letter = mask_of(low.letter(), high.letter());
  masks.upper = kNeedsCase ? mask_of(low.upper(), high.upper()) : 0;
  masks.digit = mask_of(low.digit(), high.digit());
  masks.space = mask_of(low.space(), high.space());
  masks.newline = mask_of(low.newline(), high.newline());
  masks.blank = mask_of(low.equal(' '), high.equal(' '));
  masks.apostrophe = mask_of(low.equal('\''), high.equal('\''));
  masks.slash = kNeedsSlash ? mask_of(low.equal('/'), high.equal('/')) : 0;
  masks.other_bytes = mask_of(low.bytes, high.bytes);
  return masks;
}

template <SplitRules kRules>
class Avx2Splitter final : public PieceSplitter {
 public:
  explicit Avx2Splitter(std::shared_ptr<const CharBorders> borders)
      : walker_(kRules), borders_(std::move(borders)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    size_t count = 0;
    const char* at = begin;
    while (at < end && count + kMostOfBlock <= capacity) {
      if (may_be_block(at, end)) {
        const size_t found = split_block(begin, at, end, pieces + count);
        if (found > 0) {
          count += found;
          at = begin + pieces[count - 1].end;
          continue;
        }
      }
      const char* const piece_end = walker_.piece_end(at, end);
      const CharBorders* const borders = is_worth_cutting(at, piece_end) ? borders_.get() : nullptr;
      const size_t added =
          add_pieces(begin, at, piece_end, borders, pieces + count, capacity - count, count == 0);
      if (added == 0) break;
      count += added;
      at = piece_end;
    }
    next = at;
    return count;
  }

 private:
  static constexpr size_t kBlock = 64;
  static constexpr size_t kMostOfBlock = kBlock + 8;  // As many pieces are written at most.
  static constexpr size_t kLookAhead = 4;             // A start is certain if so many more bytes are known.
  static constexpr bool kHasNewlines = kRules.newlines_end_space;
  static constexpr auto kContractions = kRules.contractions;

  static constexpr uint8_t kNoCase = kUpperClass | kLowerClass | kLetterClass;  // A letter of both cases.

  // Whether a character beyond ASCII can stand in the masks: a symbol, or a letter whose case does not count.
  static bool fits_masks(uint8_t classes) {
    if (classes & (kNumberClass | kSpaceClass)) return false;
    if constexpr (kRules.cut_at_case) return classes == 0 || classes == kNoCase;
    return true;
  }

  // Whether it is worth trying: mostly some pieces are certain.
  bool may_be_block(const char* at, const char* end) const {
    if (static_cast<unsigned char>(*at) < 0x80) ++at;
    size_t bytes;
    return at == end || static_cast<unsigned char>(*at) < 0x80 || fits_masks(walker_.class_of(at, bytes));
  }

  // The pieces of the block that are certain; 0 if the first is not.
  size_t split_block(const char* begin, const char* at, const char* end, PieceSpan* pieces) const {
    size_t size = static_cast<size_t>(end - at);
    alignas(32) char tail[kBlock];
    const char* block = at;
    if (size >= kBlock) {
      size = kBlock;
    } else {
      std::memset(tail, 0, kBlock);
      block = static_cast<const char*>(std::memcpy(tail, at, size));
    }
    Masks masks = masks_of<kRules.cut_at_case, kSlashes>(block);
    bool knows_end = size == static_cast<size_t>(end - at);
    WideChars wide;
    if (masks.other_bytes != 0) {
      const size_t all = size;
      wide = wide_chars(block, at, masks.other_bytes, size);
      masks.letter |= wide.letters;
      if constexpr (kRules.cut_at_case) {
        // A capital behind a letter without case: what is cut hangs on what comes, and the walker looks.
        const uint64_t capitals = masks.upper & wide.letters << 1;
        size = std::min<size_t>(size, static_cast<size_t>(std::countr_zero(capitals)));
      }
      knows_end = knows_end && size == all;
    }
    if (!knows_end && size <= kLookAhead) return 0;

    uint64_t starts = starts_of(masks, wide, at, end, size, knows_end);
    starts &= ~uint64_t{1};
    if (borders_ && wide.has_long())
      starts |= free_borders(at, wide, masks.letter, starts, knows_end ? low_bits(size) : 0, size);
    if (knows_end) starts |= size < 64 ? uint64_t{1} << size : 0;
    const auto base = static_cast<uint32_t>(at - begin);
    uint32_t start = base;
    auto count = static_cast<size_t>(std::popcount(starts));
    // By the eight, and perhaps some too many: the end of a loop over each costs more than they do. Behind the last one
    // stands one more that ends with the block.
    for (size_t first = 0; first <= count; first += 8)
      for (size_t i = first; i < first + 8; ++i) {
        const uint32_t piece_end = base + static_cast<uint32_t>(std::countr_zero(starts));
        pieces[i] = {start, piece_end};
        start = piece_end;
        starts &= starts - 1;
      }
    if (knows_end && size == 64) ++count;
    return count;
  }

  static constexpr bool kSlashes = kRules.symbols_swallow == SplitRules::Swallows::newlines_and_slashes;

  // Looks up what is not ASCII. `block` is the text at `at`, or a copy of its end. Ends the block before a number or a
  // blank.
  WideChars wide_chars(const char* block, const char* at, uint64_t other_bytes, size_t& size) const {
    const Half low = half_at(block), high = half_at(block + 32);
    const auto inner = [](const Half& half) {
      return _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(0xC0)), half.bytes);
    };
    // U+5000 to U+9FFF: ideographs, all of them letters.
    const auto ideograph = [](const Half& half) {
      return Half::between(half.bytes, static_cast<char>(0xE5), static_cast<char>(0xE9));
    };
    WideChars wide;
    wide.inner_bytes = mask_of(inner(low), inner(high));
    const uint64_t ideographs = mask_of(ideograph(low), ideograph(high));
    wide.letters = ideographs | ideographs << 1 | ideographs << 2;
    wide.long_chars[0] = ideographs;
    for (uint64_t rest = other_bytes & ~wide.inner_bytes & ~ideographs; rest != 0; rest &= rest - 1) {
      const auto place = static_cast<size_t>(std::countr_zero(rest));
      const uint64_t bit = uint64_t{1} << place;
      size_t bytes;
      const uint8_t found = walker_.class_of(at + place, bytes);
      if (!fits_masks(found)) {
        size = place;
        break;
      }
      if (found & kLetterClass)
        wide.letters |= low_bits(bytes) << place;
      else
        wide.symbols[bytes - 2] |= bit;
      if (bytes > 2) wide.long_chars[bytes - 3] |= bit;
    }
    return wide;
  }

  // Where pieces with long characters may be cut further: before the last start, or as far as `certain` says. Between
  // letters it may be behind the last start, if no other can be missing before it: who goes on there finds the same end
  // of the word.
  uint64_t free_borders(const char* at, const WideChars& wide, uint64_t letter, uint64_t starts,
                        uint64_t certain, size_t size) const {
    const bool has_wholes = borders_->has_wholes();
    if (starts != 0) certain |= low_bits(64 - static_cast<size_t>(std::countl_zero(starts)));
    if (!kRules.cut_at_case && !has_wholes && size > kLookAhead)
      certain |= letter & letter << 1 & low_bits(size - kLookAhead + 1);
    const uint64_t threes = wide.long_chars[0], fours = wide.long_chars[1];
    uint64_t places = (threes | fours | threes << 3 | fours << 4) & ~wide.inner_bytes & ~starts & certain &
                      low_bits(size) & ~uint64_t{1};
    const uint64_t between_threes = threes & threes << 3;
    uint64_t free = 0;
    for (; places != 0; places &= places - 1) {
      const auto place = static_cast<size_t>(std::countr_zero(places));
      const char* const border = at + place;
      const bool is_free = (between_threes >> place & 1) != 0
                               ? borders_->is_free_between_long(border)
                               : borders_->is_free_between(char_before(border), border, border + 4);
      free |= uint64_t{is_free} << place;
    }
    if (has_wholes && free != 0) [[unlikely]]
      remove_around_wholes(at, starts, size, free);
    return free;
  }

  static const char* char_before(const char* at) {
    do --at;
    while ((static_cast<unsigned char>(*at) & 0xC0) == 0x80);
    return at;
  }

  // A part that looks like a token which only comes out as a whole piece is not cut off: such a piece stays as it is.
  void remove_around_wholes(const char* at, uint64_t starts, size_t size, uint64_t& free) const {
    const uint64_t all = starts | free;
    size_t begin = 0;
    for (uint64_t rest = all; begin < size;) {
      const size_t part_end = rest == 0 ? size : static_cast<size_t>(std::countr_zero(rest));
      rest &= rest - 1;
      const bool is_cut = (free >> begin & 1) != 0 || (part_end < 64 && (free >> part_end & 1) != 0);
      if (is_cut && borders_->is_whole({at + begin, part_end - begin})) {
        const uint64_t before = starts & low_bits(begin + 1);
        const uint64_t behind = starts & ~low_bits(begin + 1);
        const size_t first = before == 0 ? 0 : 63 - static_cast<size_t>(std::countl_zero(before));
        const size_t last = behind == 0 ? 64 : static_cast<size_t>(std::countr_zero(behind));
        free &= ~(low_bits(last) & ~low_bits(first));
      }
      begin = part_end;
    }
  }

  // A bit for each start of a piece among the `size` bytes, as far as they are certain.
  uint64_t starts_of(const Masks& masks, const WideChars& wide, const char* at, const char* end, size_t size,
                     bool knows_end) const {
    const uint64_t known = low_bits(size);
    const uint64_t letter = masks.letter & known, digit = masks.digit & known;
    uint64_t space = masks.space & known;
    uint64_t newline = masks.newline & known;
    const uint64_t blank = masks.blank & known;
    uint64_t symbol = known & ~(letter | digit | space);

    if constexpr (kRules.symbols_swallow != SplitRules::Swallows::nothing) {
      uint64_t first = newline & symbol << 1;
      if (first != 0) {
        uint64_t swallowed = 0;
        if constexpr (kSlashes) {
          const uint64_t can = newline | (masks.slash & known);
          while (first != 0) {
            const uint64_t run = can & ~(can + (first & -first));
            swallowed |= run & ~low_bits(static_cast<size_t>(std::countr_zero(first)));
            first &= ~swallowed;
          }
          symbol &= ~swallowed;
        } else {
          swallowed = newline & ~(newline + first);
        }
        space &= ~swallowed;
        newline &= ~swallowed;
      }
    }

    uint64_t starts = word_starts(letter, symbol, blank, space & ~newline, masks.upper, wide);

    if constexpr (kRules.numbers == SplitRules::Numbers::single) {
      starts |= digit;
    } else if constexpr (kRules.numbers == SplitRules::Numbers::up_to_three) {
      uint64_t third = digit & ~(digit << 1);
      const uint64_t behind_three = digit & digit << 1 & digit << 2 & digit << 3;
      while (third != 0) {
        starts |= third;
        third = third << 3 & behind_three;
      }
    } else {
      const uint64_t first = digit & ~(digit << 1);
      starts |= (first >> 1 & blank) | (first & ~(blank << 1));
    }

    const uint64_t first_symbol = symbol & ~(symbol << 1);
    starts |= (first_symbol >> 1 & blank) | (first_symbol & ~(blank << 1));

    const uint64_t visible = letter | digit | symbol;
    if constexpr (kHasNewlines) {
      const uint64_t indent = space & ~newline;
      starts |= indent & visible >> 1;
      uint64_t first_indent = indent & ~(indent << 1);
      uint64_t before_newline = (indent + first_indent) & ~indent & newline;
      for (; before_newline != 0; before_newline &= before_newline - 1) {
        // White space between two newlines belongs to the piece of the first.
        const auto line_end = static_cast<size_t>(std::countr_zero(before_newline));
        const uint64_t not_indent = ~indent & low_bits(line_end);
        const size_t first = not_indent == 0 ? 0 : 64 - static_cast<size_t>(std::countl_zero(not_indent));
        if (first > 0 && (newline >> (first - 1) & 1)) first_indent &= ~(uint64_t{1} << first);
      }
      starts |= first_indent;
      starts |= newline & ~(newline << 1) & ~(indent << 1);
    } else {
      starts |= space & ~(space << 1);
      starts |= space & visible >> 1;
    }

    if constexpr (kContractions != SplitRules::Contractions::none)
      starts = with_contractions(starts, masks.apostrophe & known, letter, symbol, blank, at, end);

    if (knows_end) return starts & known;
    // The last run of white space may go on.
    const uint64_t not_space = known & ~space;
    const size_t run = not_space == 0 ? 0 : 64 - static_cast<size_t>(std::countl_zero(not_space));
    return starts & low_bits(std::min(size - kLookAhead, run) + 1);
  }

  static uint64_t word_starts(uint64_t letter, [[maybe_unused]] uint64_t symbol, uint64_t blank,
                              [[maybe_unused]] uint64_t indent, [[maybe_unused]] uint64_t upper,
                              [[maybe_unused]] const WideChars& wide) {
    uint64_t first = letter & ~(letter << 1);
    uint64_t prefix, wide_prefix = 0;
    if constexpr (kRules.any_prefix) {
      // A single symbol that does not belong to a blank before it.
      const uint64_t alone = symbol & ~(symbol << 1) & ~(blank << 1);
      prefix = first >> 1 & (indent | alone);
      for (size_t bytes = 2; bytes <= 4; ++bytes) {
        const uint64_t found = first >> bytes & wide.symbols[bytes - 2] & alone;
        wide_prefix |= found;
        first &= ~(found << bytes);
      }
    } else {
      prefix = first >> 1 & blank;
    }
    uint64_t starts = wide_prefix | prefix | (first & ~(prefix << 1));
    if constexpr (kRules.cut_at_case) starts |= upper & letter & (letter & ~upper) << 1;
    return starts;
  }

  uint64_t with_contractions(uint64_t starts, uint64_t apostrophe, uint64_t letter, uint64_t symbol,
                             uint64_t blank, const char* at, const char* end) const {
    constexpr bool kAtEnd = kContractions == SplitRules::Contractions::at_end;
    uint64_t candidates = apostrophe & letter >> 1;
    candidates &= kAtEnd ? letter << 1 : ~(symbol << 1) & ~(blank << 1);
    size_t last_end = 64;
    for (; candidates != 0; candidates &= candidates - 1) {
      const auto place = static_cast<size_t>(std::countr_zero(candidates));
      if (kAtEnd && place == last_end) continue;  // Begins a piece itself.
      const size_t bytes = walker_.contraction(at + place + 1, end);
      if (bytes == 0) continue;
      last_end = place + 1 + bytes;
      if constexpr (kAtEnd)
        starts &= ~(low_bits(last_end) & ~low_bits(place));
      else
        starts &= ~(low_bits(last_end) & ~low_bits(place + 1));
      if (last_end < 64) starts |= uint64_t{1} << last_end;
    }
    return starts;
  }

  const SplitWalker walker_;
  const std::shared_ptr<const CharBorders> borders_;
};

}  // namespace

std::unique_ptr<PieceSplitter> make_avx2_splitter(const SplitRules& rules,
                                                  std::shared_ptr<const CharBorders> borders) {
  if (rules == kGpt2Rules) return std::make_unique<Avx2Splitter<kGpt2Rules>>(std::move(borders));
  if (rules == kCl100kRules) return std::make_unique<Avx2Splitter<kCl100kRules>>(std::move(borders));
  if (rules == kQwen2Rules) return std::make_unique<Avx2Splitter<kQwen2Rules>>(std::move(borders));
  if (rules == kQwen35Rules) return std::make_unique<Avx2Splitter<kQwen35Rules>>(std::move(borders));
  if (rules == kO200kRules) return std::make_unique<Avx2Splitter<kO200kRules>>(std::move(borders));
  if (rules == kTekkenRules) return std::make_unique<Avx2Splitter<kTekkenRules>>(std::move(borders));
  return nullptr;  // Another combination has no name, so nobody asks for it.
}

}  // namespace lmemo::tokenizer

#endif
