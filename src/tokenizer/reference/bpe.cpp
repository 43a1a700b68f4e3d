#include "tokenizer/reference/bpe.h"

#include <algorithm>
#include <array>
#include <queue>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr size_t kMergesAtOnce = 32;
constexpr uint32_t kOutdated = 0xFFFFFFFF;  // The rank of a merge that is said again later.

uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

// A merge that waits for its turn: by rank, then from left to right.
struct Candidate {
  uint32_t rank;
  size_t position;
  uint32_t id;
};
struct ComesLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

}  // namespace

Result<std::unique_ptr<Model>> Bpe::make(Vocabulary vocabulary, std::span<const MergeText> merges,
                                         BpeOptions options, const std::string& where) {
  std::unique_ptr<Bpe> bpe(new Bpe(std::move(vocabulary), std::move(options)));
  bpe->merges_.reserve(merges.size());
  bpe->merge_at_.reserve(merges.size());
  for (size_t from = 0; from < merges.size(); from += kMergesAtOnce)
    LMEMO_TRY(bpe->add_merges(merges, from, std::min(merges.size(), from + kMergesAtOnce), where));
  bpe->drop_outdated();
  return std::unique_ptr<Model>(std::move(bpe));
}

Status Bpe::add_merges(std::span<const MergeText> merges, size_t from, size_t to, const std::string& where) {
  const size_t prefix_bytes = options_.continuing_subword_prefix.size();
  const auto place = [&](size_t i) { return where + ".merges[" + std::to_string(i) + "]"; };
  std::string wholes;  // All results in one text, so that they can be looked up together.
  std::array<size_t, kMergesAtOnce> ends;
  for (size_t i = from; i < to; ++i) {
    const auto [left, right] = merges[i];
    // The right part loses as many bytes as the prefix has, whatever they are: so HuggingFace.
    const bool can_cut =
        merges[i].is_comment() || right.size() == prefix_bytes ||
        (right.size() > prefix_bytes && (static_cast<unsigned char>(right[prefix_bytes]) & 0xC0) != 0x80);
    if (!can_cut) return refusal(place(i), shown(right) + " is too short for continuing_subword_prefix");
    if (!merges[i].is_comment()) wholes.append(left).append(right.substr(prefix_bytes));
    ends[i - from] = wholes.size();
  }
  std::array<std::string_view, 3 * kMergesAtOnce> tokens;
  std::array<std::optional<uint32_t>, 3 * kMergesAtOnce> ids;
  for (size_t i = 0, start = 0; i < to - from; start = ends[i++]) {
    tokens[3 * i] = merges[from + i].left;
    tokens[3 * i + 1] = merges[from + i].right;
    tokens[3 * i + 2] = std::string_view(wholes).substr(start, ends[i] - start);
  }
  vocabulary_.ids_of(std::span(tokens).first(3 * (to - from)), std::span(ids).first(3 * (to - from)));

  for (size_t i = 0; i < to - from; ++i)
    if (ids[3 * i] && ids[3 * i + 1]) merge_at_.prefetch(pair_key(*ids[3 * i], *ids[3 * i + 1]));
  for (size_t i = 0; i < to - from; ++i) {
    if (merges[from + i].is_comment()) continue;
    for (size_t token = 3 * i; token < 3 * i + 3; ++token)
      if (!ids[token]) return refusal(place(from + i), shown(tokens[token]) + " is not in the vocabulary");
    const auto next = static_cast<uint32_t>(merges_.size());
    uint32_t& at = merge_at_.find_or_add(pair_key(*ids[3 * i], *ids[3 * i + 1]), next);
    if (at != next) {
      merges_[at].rank = kOutdated;
      at = next;
    }
    merges_.push_back({*ids[3 * i], *ids[3 * i + 1], *ids[3 * i + 2], next});
  }
  return {};
}

std::unique_ptr<Bpe> Bpe::of_ranks(Vocabulary vocabulary, BpeOptions options) {
  std::unique_ptr<Bpe> bpe(new Bpe(std::move(vocabulary), std::move(options)));
  std::vector<std::string_view> parts;
  std::vector<std::optional<uint32_t>> ids;
  bpe->vocabulary_.for_each([&](std::string_view token, uint32_t id) {
    parts.clear();
    for (size_t cut = 0; (cut += char_bytes(token, cut)) < token.size();)
      parts.insert(parts.end(), {token.substr(0, cut), token.substr(cut)});
    ids.resize(parts.size());
    bpe->vocabulary_.ids_of(parts, ids);
    for (size_t i = 0; i < parts.size(); i += 2)
      if (ids[i] && ids[i + 1]) bpe->merges_.push_back({*ids[i], *ids[i + 1], id, id});
  });
  // All merges to one token have its rank; which of them stands first does not matter.
  std::sort(bpe->merges_.begin(), bpe->merges_.end(), [](const BpeMerge& a, const BpeMerge& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.left != b.left ? a.left < b.left : a.right < b.right;
  });
  bpe->merge_at_.reserve(bpe->merges_.size());
  for (uint32_t at = 0; at < bpe->merges_.size(); ++at)
    bpe->merge_at_.find_or_add(pair_key(bpe->merges_[at].left, bpe->merges_[at].right), at);
  return bpe;
}

void Bpe::drop_outdated() {
  if (merge_at_.size() == merges_.size()) return;
  std::erase_if(merges_, [](const BpeMerge& merge) { return merge.rank == kOutdated; });
  for (uint32_t at = 0; at < merges_.size(); ++at)
    merge_at_.find_or_add(pair_key(merges_[at].left, merges_[at].right), at) = at;
}

const BpeMerge* Bpe::merge_of(uint32_t left, uint32_t right) const {
  const uint32_t at = merge_at_.find(pair_key(left, right));
  return at == NumberTable::kNone ? nullptr : &merges_[at];
}

Result<std::vector<Bpe::Symbol>> Bpe::symbols_of(std::string_view piece) const {
  std::vector<Symbol> symbols;
  const auto add = [&](uint32_t id, size_t byte_count) {
    const size_t previous = symbols.empty() ? kNone : symbols.size() - 1;
    if (previous != kNone) symbols[previous].next = symbols.size();
    symbols.push_back({id, byte_count, previous, kNone});
  };

  std::optional<std::pair<uint32_t, size_t>> unknown;  // Not added yet: it may grow.
  const auto add_unknown = [&] {
    if (unknown) add(unknown->first, unknown->second);
    unknown.reset();
  };

  std::string character;
  for (size_t at = 0; at < piece.size();) {
    const size_t byte_count = char_bytes(piece, at);
    character.clear();
    if (at > 0) character += options_.continuing_subword_prefix;
    character += piece.substr(at, byte_count);
    at += byte_count;
    if (at == piece.size()) character += options_.end_of_word_suffix;

    if (const std::optional<uint32_t> id = vocabulary_.id_of(character)) {
      add_unknown();
      add(*id, byte_count);
      continue;
    }
    if (options_.byte_fallback) {
      std::vector<uint32_t> bytes;
      for (const char byte : character)
        if (const std::optional<uint32_t> id =
                vocabulary_.id_of(byte_token(static_cast<unsigned char>(byte))))
          bytes.push_back(*id);
      if (bytes.size() == character.size()) {
        // An unknown character that waits comes behind these bytes: so HuggingFace.
        for (const uint32_t id : bytes) add(id, 1);
        continue;
      }
    }
    if (!options_.unk_token) continue;  // Left out without a word: so HuggingFace.
    if (unknown && options_.fuse_unk) {
      unknown->second += byte_count;
      continue;
    }
    add_unknown();
    const std::optional<uint32_t> id = vocabulary_.id_of(*options_.unk_token);
    if (!id)
      return Error{ErrorCode::invalid_argument, "unknown character, and unk_token " +
                                                    shown(*options_.unk_token) + " is not in the vocabulary"};
    unknown = {*id, byte_count};
  }
  add_unknown();
  return symbols;
}

void Bpe::merge_all(std::vector<Symbol>& symbols) const {
  std::priority_queue<Candidate, std::vector<Candidate>, ComesLater> waiting;
  const auto consider = [&](size_t left, size_t right) {
    if (const BpeMerge* merge = merge_of(symbols[left].id, symbols[right].id))
      waiting.push({merge->rank, left, merge->id});
  };
  for (size_t i = 1; i < symbols.size(); ++i) consider(i - 1, i);

  while (!waiting.empty()) {
    const Candidate best = waiting.top();
    waiting.pop();
    Symbol& left = symbols[best.position];
    if (left.byte_count == 0 || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    // What stood here may have changed meanwhile. HuggingFace compares results, not ranks.
    const BpeMerge* merge = merge_of(left.id, right.id);
    if (!merge || merge->id != best.id) continue;

    left.id = best.id;
    left.byte_count += right.byte_count;
    left.next = right.next;
    right.byte_count = 0;
    if (left.next != kNone) symbols[left.next].previous = best.position;
    if (left.previous != kNone) consider(left.previous, best.position);
    if (left.next != kNone) consider(best.position, left.next);
  }
}

Status Bpe::tokenize(std::string_view piece, std::vector<uint32_t>& ids) const {
  if (piece.empty()) return {};
  if (options_.ignore_merges) {
    if (const std::optional<uint32_t> id = vocabulary_.id_of(piece)) {
      ids.push_back(*id);
      return {};
    }
  }
  LMEMO_ASSIGN(std::vector<Symbol> symbols, symbols_of(piece));
  merge_all(symbols);
  for (const Symbol& symbol : symbols)
    if (symbol.byte_count > 0) ids.push_back(symbol.id);
  return {};
}

}  // namespace lmemo::tokenizer
