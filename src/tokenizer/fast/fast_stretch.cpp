// A stretch of text without added tokens: cut into pieces, and each looked up.
//
// Pieces come in blocks: first all keys, so that the table's lines are on their way, then all ids. Short pieces that
// the table does not know are left out at first; when there are enough of them the model makes all of them together, and
// what was written behind them moves.

#include <algorithm>
#include <cstring>
#include <limits>

#include "tokenizer/fast/fast_tokenizer.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kMaxStretch = std::numeric_limits<uint32_t>::max();

}  // namespace

class FastTokenizer::Block {
 public:
  Block(const FastTokenizer& tokenizer, const char* end, Scratch& scratch, IdBuffer& ids)
      : tokenizer_(tokenizer), end_(end), made_(scratch.made), ids_(ids), texts_(scratch.new_texts) {
    texts_.clear();
  }

  // The pieces from `at` on, as many as a block has; goes on behind them.
  Status encode(const char*& at) {
    base_ = at;
    const size_t count = tokenizer_.plan_.splitter->split(base_, end_, pieces_, kPieces, at);
    for (size_t i = 0; i < count; ++i) {
      const std::string_view piece = piece_at(i);
      if (piece.size() > PieceTable::kMaxKeyBytes) continue;
      keys_[i] = end_ - piece.data() >= 16 ? PieceTable::key_of(piece.data(), piece.size())
                                           : PieceTable::key_of(piece);
      hashes_[i] = keys_[i].hash();
      tokenizer_.table_.prefetch(hashes_[i]);
    }

    // Room for one id a byte.
    if (missing_count_ + count > kPieces) LMEMO_TRY(add_missing());
    const auto byte_count = static_cast<size_t>(at - base_);
    uint32_t* out = ids_.room_for(byte_count + missing_bytes_);
    for (size_t i = 0; i < count; ++i) {
      const std::string_view piece = piece_at(i);
      const bool has_key = piece.size() <= PieceTable::kMaxKeyBytes;
      if (has_key) [[likely]] {
        if (uint32_t* const known = tokenizer_.table_.copy_ids(keys_[i], hashes_[i], out)) [[likely]] {
          out = known;
          continue;
        }
      } else if (LongPieceTable::takes(piece)) {
        if (uint32_t* const known = tokenizer_.long_table_.copy_ids(piece, out)) {
          out = known;
          continue;
        }
      }
      ids_.advance_to(out);
      if (piece.size() <= PieceModel::kShortBytes) {
        leave_out(i);
        continue;
      }
      LMEMO_TRY(add_missing());
      const size_t first = ids_.size();
      LMEMO_TRY(tokenizer_.plan_.model->encode(piece, ids_));
      if (LongPieceTable::takes(piece)) tokenizer_.long_table_.put(piece, ids_.from(first));
      out = ids_.room_for(byte_count - pieces_[i].end);
    }
    ids_.advance_to(out);
    return texts_.size() >= kEnough ? add_missing() : Status();
  }

  // Puts in what was left out. Requires: that room for it was made before.
  Status add_missing() {
    if (missing_count_ == 0) return {};
    made_.cut_to(0);
    IdRange ranges[kPieces];
    LMEMO_TRY(tokenizer_.plan_.model->encode_short(texts_, made_, ranges));
    for (size_t i = 0; i < texts_.size(); ++i) remember(i, made_.in(ranges[i]));

    size_t added = 0;
    for (size_t i = 0; i < missing_count_; ++i) added += ranges[missing_[i].text].count;
    uint32_t* end = ids_.data() + ids_.size();
    uint32_t* to = end + added;
    ids_.advance_to(to);
    // From the back, so that nothing is overwritten that has yet to move.
    for (size_t i = missing_count_; i-- > 0;) {
      uint32_t* const behind = ids_.data() + missing_[i].place;
      const auto known = static_cast<size_t>(end - behind);
      to -= known;
      std::memmove(to, behind, known * sizeof(uint32_t));
      end = behind;
      const std::span<const uint32_t> ids = made_.in(ranges[missing_[i].text]);
      to -= ids.size();
      for (size_t k = 0; k < ids.size(); ++k) to[k] = ids[k];
    }
    missing_count_ = missing_bytes_ = 0;
    texts_.clear();
    return {};
  }

 private:
  static constexpr size_t kPieces = 256;
  static constexpr size_t kEnough = 16;  // New texts, so that the model has several at any time.

  // Among so many is looked for an equal one. Among all, noise would spend most of its time on that.
  static constexpr uint32_t kLooksBack = 12;

  // A piece that was left out.
  struct Missing {
    uint32_t text;  // Which of the texts it is: new names come several times in a row.
    size_t place;   // How many ids stand before it.
  };

  std::string_view piece_at(size_t i) const {
    return {base_ + pieces_[i].begin, pieces_[i].end - pieces_[i].begin};
  }

  void leave_out(size_t piece) {
    const std::string_view text = piece_at(piece);
    const auto count = static_cast<uint32_t>(texts_.size());
    uint32_t number = count - std::min(count, kLooksBack);
    while (number < count && texts_[number] != text) ++number;
    if (number == count) {
      texts_.push_back(text);
      if (text.size() <= PieceTable::kMaxKeyBytes) text_keys_[number] = keys_[piece];
    }
    missing_[missing_count_++] = {number, ids_.size()};
    missing_bytes_ += text.size();
  }

  void remember(size_t number, std::span<const uint32_t> ids) {
    const std::string_view text = texts_[number];
    if (text.size() > PieceTable::kMaxKeyBytes) {
      tokenizer_.long_table_.put(text, ids);
    } else if (!ids.empty()) {
      tokenizer_.table_.put(text_keys_[number], text_keys_[number].hash(), ids);
    }
  }

  const FastTokenizer& tokenizer_;
  const char* const end_;
  IdBuffer& made_;
  IdBuffer& ids_;
  const char* base_ = nullptr;
  PieceSpan pieces_[kPieces];
  PieceTable::Key keys_[kPieces];
  uint64_t hashes_[kPieces];

  // What was left out, up to kPieces times.
  Missing missing_[kPieces];
  size_t missing_count_ = 0, missing_bytes_ = 0;
  std::vector<std::string_view>&
      texts_;  // Most of them once. A short text would feel the time to make an array of them.
  PieceTable::Key text_keys_[kPieces];  // Of those that have one.
};

Status FastTokenizer::encode_stretch(std::string_view stretch, StretchPlace place, Scratch& scratch,
                                     IdBuffer& ids) const {
  if (stretch.empty()) return {};
  if (plan_.adds_space && stretch.front() != ' ') {
    scratch.spaced.assign(1, ' ').append(stretch);
    stretch = scratch.spaced;
  }
  if (plan_.marker) stretch = plan_.marker->mark(stretch, place, scratch.spaced);
  if (stretch.size() >= kMaxStretch)
    return Error{ErrorCode::invalid_argument, "a text of " + std::to_string(stretch.size()) +
                                                  " bytes without an added token; expected less than 4 GiB"};
  const char* const end = stretch.data() + stretch.size();
  Block block(*this, end, scratch, ids);
  for (const char* at = stretch.data(); at < end;) LMEMO_TRY(block.encode(at));
  return block.add_missing();
}

}  // namespace lmemo::tokenizer
