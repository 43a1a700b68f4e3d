#include "tokenizer/fast/merge_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <numeric>

namespace lmemo::tokenizer {
namespace {

// Which places of a piece were given up: short pieces need no memory.
class OpenPlaces {
 public:
  explicit OpenPlaces(size_t byte_count) {
    if (byte_count >= 64 * few_.size()) {
      many_.assign(byte_count / 64 + 1, ~uint64_t{0});
      words_ = many_.data();
    } else {
      few_.fill(~uint64_t{0});
      words_ = few_.data();
    }
  }
  bool is_open(size_t place) const { return words_[place / 64] >> place % 64 & 1; }
  void close(size_t place) { words_[place / 64] &= ~(uint64_t{1} << place % 64); }

 private:
  std::array<uint64_t, 4> few_;
  std::vector<uint64_t> many_;
  uint64_t* words_;
};

}  // namespace

// What was found before in a long text that says the same again and again: without it, a row of dashes would try all
// lengths of them at every step.
class MergeEncoder::Memo {
 public:
  Memo(const MergeEncoder& encoder, std::string_view text)
      : encoder_(encoder), end_(text.data() + text.size()), is_used_(text.size() >= kMinBytes) {
    if (is_used_) entries_.resize(std::bit_ceil(std::min(text.size(), kMaxEntries)));
  }

  // The longest token that `token` begins with, itself included, whose border to `last` holds; or kNone.
  uint32_t first_holding(uint32_t last, uint32_t token, const MergeTable::Border& border) {
    if (!is_used_) return encoder_.first_holding(last, token, border);
    Entry& entry = entries_[(last * 0x9E3779B1u ^ token * 0x85EBCA77u) >> 7 & (entries_.size() - 1)];
    if (entry.last != last || entry.token != token)
      entry = {last, token, encoder_.first_holding(last, token, border)};
    return entry.found;
  }

  // The longest token at this place. Inside a run of one byte it is the same as long as the run goes on far enough.
  uint32_t longest_at(const char* at) {
    if (!is_used_) return encoder_.trie_.longest_prefix(at, end_);
    if (at < run_begin_ || at >= run_end_) {
      run_begin_ = run_end_ = at;
      while (run_end_ < end_ && *run_end_ == *at) ++run_end_;
      run_reach_ = ~size_t{0};
    }
    const auto left = static_cast<size_t>(run_end_ - at);
    if (left >= run_reach_) return run_token_;
    size_t reach;
    const uint32_t token = encoder_.trie_.longest_prefix(at, end_, reach);
    if (reach < left) {
      run_reach_ = reach + 1;
      run_token_ = token;
    }
    return token;
  }

 private:
  static constexpr size_t kMinBytes = 256, kMaxEntries = 32768;
  struct Entry {
    uint32_t last = kNone, token = kNone, found = kNone;
  };
  const MergeEncoder& encoder_;
  const char* const end_;
  const bool is_used_;
  std::vector<Entry> entries_;
  const char* run_begin_ = nullptr;  // Of equal bytes, looked at last.
  const char* run_end_ = nullptr;
  size_t run_reach_ = 0;  // With so many bytes of the run ahead, the longest token is run_token_.
  uint32_t run_token_ = kNone;
};

std::optional<MergeEncoder> MergeEncoder::make(std::span<const Token> tokens, std::span<const uint32_t> atoms,
                                               std::span<const Merge> merges, uint32_t id_limit) {
  for (const Merge& merge : merges)
    if (merge.rank >= MergeTable::kNever) return std::nullopt;
  MergeEncoder encoder;
  encoder.made_.resize(id_limit);
  encoder.reached_.resize(id_limit);
  encoder.byte_atoms_.fill(kNone);
  std::vector<MergeTable::EndBytes> ends(id_limit);
  std::vector<bool> is_byte(id_limit);
  for (const Token& token : tokens) {
    encoder.made_[token.id].byte_count = static_cast<uint32_t>(token.text.size());
    ends[token.id] = {static_cast<unsigned char>(token.text.front()),
                      static_cast<unsigned char>(token.text.back())};
  }
  for (const uint32_t atom : atoms) {
    is_byte[atom] = encoder.made_[atom].byte_count == 1;
    if (is_byte[atom]) encoder.byte_atoms_[ends[atom].first] = atom;
    encoder.atoms_are_bytes_ = encoder.atoms_are_bytes_ && is_byte[atom];
  }
  encoder.merges_ = MergeTable(merges, ends, is_byte);
  if (!encoder.find_makings(atoms, merges, ends)) return std::nullopt;
  // Two tokens between which something merges before both are there never meet. Some files list every split of each
  // token, and without those the table is half as large.
  std::vector<Merge> happening;
  happening.reserve(encoder.made_.size());
  for (const Merge& merge : merges) {
    const Made& made = encoder.made_[merge.id];
    if (made.turn == merge.rank + 1 && made.left == merge.left && made.right == merge.right)
      happening.push_back(merge);
  }
  if (happening.size() < merges.size() / 8 * 7) encoder.merges_ = MergeTable(happening, ends, is_byte);

  std::vector<std::pair<std::string_view, uint32_t>> texts;
  texts.reserve(tokens.size());
  for (const Token& token : tokens)
    if (encoder.reached_[token.id]) texts.emplace_back(token.text, token.id);
  std::sort(texts.begin(), texts.end());
  encoder.trie_ = DoubleArrayTrie(texts);

  // In sorted order the texts with which one begins are those still open before it.
  std::vector<std::pair<std::string_view, uint32_t>> open;
  for (const auto& [text, id] : texts) {
    while (!open.empty() && !text.starts_with(open.back().first)) open.pop_back();
    encoder.made_[id].prefix = open.empty() ? kNone : open.back().second;
    open.emplace_back(text, id);
  }
  return encoder;
}

// Do the two stay as they are if they are merged as one text? (Without `look_at_whole`: but for a merge of the two
// themselves.)
//
// The lowest rank comes first, but a merge may make way for one of a lower rank, which then follows at once. So things
// happen at the time that is the latest turn they had to wait for; and at the same time from left to right. We go
// back in time from the two whole tokens: at each moment one part of the left token ends at the border, and one of the
// right begins there. A merge of these two parts happens if it comes before either is taken by its other neighbour.
bool MergeEncoder::border_holds(uint32_t left, uint32_t right, const MergeTable::Border& border,
                                bool look_at_whole) const {
  const Made* left_parent = nullptr;
  const Made* right_parent = nullptr;
  for (;;) {
    const Made& made_left = made_[left];
    const Made& made_right = made_[right];
    if (look_at_whole || left_parent || right_parent) {
      if (const uint32_t rank = merges_.find(left, right, border).rank; rank < MergeTable::kNever) {
        const uint32_t turn = rank + 1;
        const uint32_t time = std::max({turn, made_left.time, made_right.time});
        const bool before_left =
            !left_parent || time < left_parent->time ||
            (time == left_parent->time && made_right.time < time && turn < time && turn < left_parent->turn);
        const bool before_right = !right_parent || time < right_parent->time ||
                                  (time == right_parent->time &&
                                   (made_right.time < time || made_[right_parent->right].time == time ||
                                    turn <= right_parent->turn));
        if (before_left && before_right) return false;
      }
    }
    // Of two parts that were made at the same time, the left one is older.
    if (made_left.time > made_right.time) {
      left_parent = &made_left;
      left = made_left.right;
    } else {
      if (made_right.time == 0) return true;
      right_parent = &made_right;
      right = made_right.left;
    }
  }
}

// How each token is made: by the merge up to which nothing crosses the border between its parts. At most one is so.
// Short tokens first, since what they are made of is shorter.
bool MergeEncoder::find_makings(std::span<const uint32_t> atoms, std::span<const Merge> merges,
                                std::span<const MergeTable::EndBytes> ends) {
  for (const uint32_t id : atoms) reached_[id] = true;
  std::vector<uint32_t> by_length(merges.size());
  std::vector<uint32_t> starts(2);  // Of each length, by counting: comparing would look all over the tables.
  for (const Merge& merge : merges) {
    const size_t bytes = made_[merge.id].byte_count;
    if (starts.size() < bytes + 2) starts.resize(bytes + 2);
    ++starts[bytes + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  for (uint32_t place = 0; place < merges.size(); ++place)
    by_length[starts[made_[merges[place].id].byte_count]++] = place;
  for (const uint32_t place : by_length) {
    const auto& [left, right, id, rank] = merges[place];
    if (!reached_[left] || !reached_[right]) continue;
    const MergeTable::Border& border =
        merges_.border(static_cast<char>(ends[left].last), static_cast<char>(ends[right].first));
    if (!border_holds(left, right, border, false)) continue;
    if (reached_[id]) return false;
    reached_[id] = true;
    Made& made = made_[id];
    made.left = left;
    made.right = right;
    made.turn = rank + 1;
    made.time = std::max({made.turn, made_[left].time, made_[right].time});
  }
  return true;
}

uint32_t MergeEncoder::first_holding(uint32_t last, uint32_t token, const MergeTable::Border& border) const {
  while (token != kNone && !border_holds(last, token, border, true)) token = made_[token].prefix;
  return token;
}

void MergeEncoder::encode(std::string_view text, IdBuffer& out) const {
  if (text.size() > kMaxMerged) return encode_by_borders(text, out);
  IdRange range;
  encode_short({&text, 1}, out, &range);
  out.cut_to(range.first + range.count);
}

void MergeEncoder::encode_by_borders(std::string_view text, IdBuffer& out) const {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const size_t first = out.size();
  uint32_t* ids = out.room_for(text.size());
  uint32_t* const first_id = ids;
  OpenPlaces places(text.size());
  Memo memo(*this, text);

  if (text.empty()) return;
  const char* at = begin;
  uint32_t token = memo.longest_at(at);
  for (;;) {
    const uint32_t last = ids == first_id ? kNone : ids[-1];
    if (token != kNone && last != kNone) token = memo.first_holding(last, token, merges_.border(at[-1], *at));
    if (token == kNone) {
      // Nothing can follow here: one step back, to try what is shorter.
      assert(last != kNone);
      if (last == kNone) return out.cut_to(first);
      places.close(static_cast<size_t>(at - begin));
      --ids;
      at -= made_[last].byte_count;
      token = made_[last].prefix;
      continue;
    }
    const uint32_t byte_count = made_[token].byte_count;
    if (!places.is_open(static_cast<size_t>(at - begin) + byte_count)) {
      token = made_[token].prefix;
      continue;
    }
    *ids++ = token;
    at += byte_count;
    if (at == end) break;
    token = memo.longest_at(at);
  }
  out.advance_to(ids);
}

}  // namespace lmemo::tokenizer
