#include "tokenizer/fast/merge_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <numeric>

namespace lmemo::tokenizer {
namespace {

constexpr uint64_t kNoPair = ~uint64_t{0};
constexpr uint32_t kNever = ~uint32_t{0};  // No rank.
constexpr size_t kFilterBits = size_t{1} << 22;

uint64_t pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
uint64_t hash_of(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15;
  pair ^= pair >> 32;
  return pair * 0xD6E8FEB86659FD93;
}

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

// Which token follows another one, for a long text that says the same again and again: without it, a row of dashes
// would try all lengths of them at every step.
class MergeEncoder::Memo {
 public:
  explicit Memo(size_t byte_count) : is_used_(byte_count >= kMinBytes) {
    if (is_used_) entries_.resize(kEntries);
  }

  // The longest token that `token` begins with, itself included, whose border to `last` holds; or kNone.
  uint32_t first_holding(const MergeEncoder& encoder, uint32_t last, uint32_t token) {
    if (!is_used_) return encoder.first_holding(last, token);
    Entry& entry = entries_[(last * 31 + token) % kEntries];
    if (entry.last != last || entry.token != token) entry = {last, token, encoder.first_holding(last, token)};
    return entry.found;
  }

 private:
  static constexpr size_t kMinBytes = 256, kEntries = 1024;
  struct Entry {
    uint32_t last = kNone, token = kNone, found = kNone;
  };
  const bool is_used_;
  std::vector<Entry> entries_;
};

std::optional<MergeEncoder> MergeEncoder::make(std::span<const Token> tokens, std::span<const uint32_t> atoms,
                                               std::span<const Merge> merges, uint32_t id_limit) {
  MergeEncoder encoder;
  encoder.made_.resize(id_limit);
  encoder.reached_.resize(id_limit);
  for (const Token& token : tokens)
    encoder.made_[token.id].byte_count = static_cast<uint32_t>(token.text.size());
  encoder.index_merges(merges);
  if (!encoder.find_makings(atoms, merges)) return std::nullopt;

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

void MergeEncoder::index_merges(std::span<const Merge> merges) {
  const auto bits = static_cast<unsigned>(std::bit_width(merges.size() * 2 | 15));
  pair_shift_ = 64 - bits;
  pair_ranks_.assign(size_t{1} << bits, {kNoPair, 0});
  pair_filter_.assign(kFilterBits / 64, 0);
  for (const Merge& merge : merges) {
    const uint64_t pair = pair_of(merge.left, merge.right);
    const uint64_t hash = hash_of(pair);
    size_t place = hash >> pair_shift_;
    while (pair_ranks_[place].pair != kNoPair) place = (place + 1) & (pair_ranks_.size() - 1);
    pair_ranks_[place] = {pair, merge.rank};
    const size_t bit = hash % kFilterBits;
    pair_filter_[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

uint32_t MergeEncoder::rank_of(uint32_t left, uint32_t right) const {
  const uint64_t pair = pair_of(left, right);
  const uint64_t hash = hash_of(pair);
  const size_t bit = hash % kFilterBits;
  if (!(pair_filter_[bit / 64] >> bit % 64 & 1)) return kNever;
  for (size_t place = hash >> pair_shift_;; place = (place + 1) & (pair_ranks_.size() - 1)) {
    if (pair_ranks_[place].pair == pair) return pair_ranks_[place].rank;
    if (pair_ranks_[place].pair == kNoPair) return kNever;
  }
}

// Do the two stay as they are if they are merged as one text? (Without `look_at_whole`: but for a merge of the two
// themselves.)
//
// The lowest rank comes first, but a merge may make way for one of a lower rank, which then follows at once. So things
// happen at the time that is the latest turn they had to wait for; and at the same time from left to right. We go
// back in time from the two whole tokens: at each moment one part of the left token ends at the border, and one of the
// right begins there. A merge of these two parts happens if it comes before either is taken by its other neighbour.
bool MergeEncoder::border_holds(uint32_t left, uint32_t right, bool look_at_whole) const {
  const Made* left_parent = nullptr;
  const Made* right_parent = nullptr;
  for (;;) {
    const Made& made_left = made_[left];
    const Made& made_right = made_[right];
    if (look_at_whole || left_parent || right_parent) {
      const uint32_t rank = rank_of(left, right);
      if (rank != kNever) {
        const uint32_t turn = rank + 1;
        const uint32_t time = std::max({turn, made_left.time, made_right.time});
        const bool before_left = !left_parent || time < left_parent->time ||
                                 (time == left_parent->time && made_right.time < time && turn < time &&
                                  turn < left_parent->turn);
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
bool MergeEncoder::find_makings(std::span<const uint32_t> atoms, std::span<const Merge> merges) {
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
    if (!reached_[left] || !reached_[right] || !border_holds(left, right, false)) continue;
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

uint32_t MergeEncoder::first_holding(uint32_t last, uint32_t token) const {
  while (token != kNone && !border_holds(last, token, true)) token = made_[token].prefix;
  return token;
}

void MergeEncoder::encode(std::string_view text, IdBuffer& out) const {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const size_t first = out.size();
  uint32_t* ids = out.room_for(text.size());
  uint32_t* const first_id = ids;
  OpenPlaces places(text.size());
  Memo memo(text.size());

  if (text.empty()) return;
  const char* at = begin;
  uint32_t token = trie_.longest_prefix(at, end);
  for (;;) {
    const uint32_t last = ids == first_id ? kNone : ids[-1];
    if (token != kNone && last != kNone) token = memo.first_holding(*this, last, token);
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
    token = trie_.longest_prefix(at, end);
  }
  out.advance_to(ids);
}

}  // namespace lmemo::tokenizer
