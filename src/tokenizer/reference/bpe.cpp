#include "tokenizer/reference/bpe.h"

#include <queue>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

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

Result<std::unique_ptr<Model>> Bpe::make(Vocabulary vocabulary,
                                         const std::vector<std::pair<std::string, std::string>>& merges,
                                         BpeOptions options, const std::string& where) {
  std::unique_ptr<Bpe> bpe(new Bpe(std::move(vocabulary), std::move(options)));
  const size_t prefix_bytes = bpe->options_.continuing_subword_prefix.size();
  bpe->merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto place = [&] { return where + ".merges[" + std::to_string(rank) + "]"; };
    // The right part loses as many bytes as the prefix has, whatever they are: so HuggingFace.
    const bool can_cut =
        right.size() == prefix_bytes ||
        (right.size() > prefix_bytes && (static_cast<unsigned char>(right[prefix_bytes]) & 0xC0) != 0x80);
    if (!can_cut) return refusal(place(), shown(right) + " is too short for continuing_subword_prefix");
    const std::string whole = left + right.substr(prefix_bytes);
    const std::optional<uint32_t> left_id = bpe->id_of(left), right_id = bpe->id_of(right),
                                  id = bpe->id_of(whole);
    if (!left_id || !right_id || !id)
      return refusal(place(), shown(!left_id    ? left
                                    : !right_id ? right
                                                : whole) +
                                  " is not in the vocabulary");
    bpe->merges_.insert_or_assign(pair_key(*left_id, *right_id), Merge{static_cast<uint32_t>(rank), *id});
  }
  return std::unique_ptr<Model>(std::move(bpe));
}

const Bpe::Merge* Bpe::merge_of(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
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
    if (const Merge* merge = merge_of(symbols[left].id, symbols[right].id))
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
    const Merge* merge = merge_of(left.id, right.id);
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
