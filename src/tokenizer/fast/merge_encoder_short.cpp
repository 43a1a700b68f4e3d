// Short pieces are merged as it is written down, the lowest rank first; several of them side by side.
//
// Every merge asks the table twice, and the next one hangs on the answers: a piece alone spends its time waiting for
// memory. So each piece of a group takes one step in turn, first all questions and then all answers, and a step has no
// branch that hangs on an answer.

#include <algorithm>
#include <bit>

#include "tokenizer/fast/merge_encoder.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {

// A piece on its way. A border is named by the byte behind it, a token by its first byte. There is a border at each
// end, at which nothing ever merges.
class MergeEncoder::ShortPiece {
 public:
  void begin(const MergeEncoder& encoder, std::string_view text) {
    const size_t size = text.size();
    open_ = uint32_t{1} << size;
    lanes_ = static_cast<uint32_t>(size);
    std::fill_n(turns_, kLanes, kNoTurn);
    borders_[0] = borders_[size] = &kClosed;
    tokens_[size] = 0;
    if (encoder.atoms_are_bytes_) {
      open_ |= open_ - 1;
      for (size_t i = 0; i < size; ++i) tokens_[i] = encoder.byte_atoms_[static_cast<unsigned char>(text[i])];
      for (size_t i = 1; i < size; ++i) {
        const MergeTable::Border& border = encoder.merges_.border(text[i - 1], text[i]);
        borders_[i] = &border;
        merged_[i] = border.byte_id;
        turns_[i] = turn_of(border.byte_rank, i);
      }
      return;
    }
    for (size_t i = 0, before = 0, bytes; i < size; before = i, i += bytes) {
      bytes = char_bytes(text, i);
      open_ |= uint32_t{1} << i;
      tokens_[i] = bytes == 1 ? encoder.byte_atoms_[static_cast<unsigned char>(text[i])]
                              : encoder.trie_.find(text.substr(i, bytes));
      if (i == 0) continue;
      borders_[i] = &encoder.merges_.border(text[i - 1], text[i]);
      note(i, encoder.merges_.find(tokens_[before], tokens_[i], *borders_[i]));
    }
  }

  // Merges the two that are first; false if there is nothing left to merge. Then `learn` has to follow.
  bool merge(const MergeTable& merges) {
    uint32_t first = kNoTurn;
    for (size_t i = 0; i < lanes_; i += 8) first = earlier(first, first_of_eight(turns_ + i));
    if (first >= kNoTurn) return false;
    const size_t place = first % kLanes;
    open_ &= ~(uint32_t{1} << place);
    turns_[place] = kNoTurn;
    middle_ = static_cast<uint32_t>(border_before(place));
    left_ = static_cast<uint32_t>(border_before(middle_));
    right_ = static_cast<uint32_t>(std::countr_zero(open_ & ~uint32_t{0} << place));
    tokens_[middle_] = merged_[place];
    left_line_ = merges.prefetch(tokens_[left_], tokens_[middle_], *borders_[middle_]);
    right_line_ = merges.prefetch(tokens_[middle_], tokens_[right_], *borders_[right_]);
    return true;
  }

  // What becomes of the new token and its neighbours.
  void learn(const MergeTable& merges) {
    note(middle_, merges.find_from(left_line_, tokens_[left_], tokens_[middle_], *borders_[middle_]));
    note(right_, merges.find_from(right_line_, tokens_[middle_], tokens_[right_], *borders_[right_]));
  }

  uint32_t* write_ids(uint32_t* ids) const {
    uint32_t starts = open_ & ~std::bit_floor(open_);
    for (; starts != 0; starts &= starts - 1) *ids++ = tokens_[std::countr_zero(starts)];
    return ids;
  }

 private:
  static constexpr size_t kLanes = kMaxMerged + 1;
  static constexpr uint32_t kNoTurn = MergeTable::kNever * kLanes;
  static constexpr MergeTable::Border kClosed{};

  // The lowest rank first, of equal ones the leftmost.
  static uint32_t turn_of(uint32_t rank, size_t place) {
    return rank * kLanes | static_cast<uint32_t>(place);
  }

  // Compilers make a branch of some std::min, and nobody can tell which way it goes.
  static uint32_t earlier(uint32_t a, uint32_t b) { return b ^ ((a ^ b) & (uint32_t{0} - (a < b))); }

  static uint32_t first_of_eight(const uint32_t* turns) {
    const auto first = [&](size_t i, size_t j) { return earlier(turns[i], turns[j]); };
    return earlier(earlier(first(0, 1), first(2, 3)), earlier(first(4, 5), first(6, 7)));
  }

  // The last one before `place`, or the first of all.
  size_t border_before(size_t place) const {
    return 31 - static_cast<size_t>(std::countl_zero((open_ & ((uint32_t{1} << place) - 1)) | 1));
  }

  // When the tokens on both sides of `place` merge, and to what.
  void note(size_t place, const MergeTable::Found& found) {
    turns_[place] = turn_of(found.rank, place);
    merged_[place] = found.id;
  }

  uint32_t turns_[kLanes];
  uint32_t tokens_[kLanes];
  uint32_t merged_[kLanes];  // What the two become that meet here.
  const MergeTable::Border* borders_[kLanes];
  uint32_t open_;                    // Borders that are still there, and both ends.
  uint32_t lanes_;                   // No border behind so many counts.
  uint32_t left_, middle_, right_;   // Where the tokens begin that were merged last, and both neighbours,
  uint32_t left_line_, right_line_;  // and where the answers about them stand.
};

void MergeEncoder::encode_short(std::span<const std::string_view> pieces, IdBuffer& out,
                                IdRange* ranges) const {
  constexpr size_t kGroup = 8;
  struct Going {
    ShortPiece piece;
    size_t number;
  };
  Going group[kGroup];
  Going* going[kGroup];
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); bytes += pieces[i++].size()) ranges[i].first = out.size() + bytes;
  uint32_t* const ids = out.room_for(bytes) - out.size();

  size_t begun = 0, count = 0;
  const auto begin = [&](Going* free) {
    free->piece.begin(*this, pieces[begun]);
    free->number = begun++;
  };
  for (; count < kGroup && begun < pieces.size(); ++count) begin(going[count] = &group[count]);
  while (count > 0) {
    for (size_t i = 0; i < count;) {
      if (going[i]->piece.merge(merges_)) {
        ++i;
        continue;
      }
      IdRange& range = ranges[going[i]->number];
      range.count = static_cast<size_t>(going[i]->piece.write_ids(ids + range.first) - (ids + range.first));
      if (begun < pieces.size()) {
        begin(going[i]);
      } else {
        going[i] = going[--count];
      }
    }
    for (size_t i = 0; i < count; ++i) going[i]->piece.learn(merges_);
  }
  out.advance_to(ids + out.size() + bytes);
}

}  // namespace lmemo::tokenizer
