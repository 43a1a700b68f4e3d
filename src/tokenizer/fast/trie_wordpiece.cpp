#include "tokenizer/fast/trie_wordpiece.h"

#include <algorithm>

#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {

TrieWordPiece::TrieWordPiece(const WordPiece& reference)
    : reference_(reference), unknown_(reference.id_of(reference.unk_token())) {
  using Texts = std::vector<std::pair<std::string_view, uint32_t>>;
  const std::string_view prefix = reference.continuing_subword_prefix();
  Texts starts, continuations;
  const auto add = [&](Texts& texts, std::string_view text, uint32_t id) {
    if (text.empty()) return;
    texts.emplace_back(text, static_cast<uint32_t>(tokens_.size()));
    tokens_.emplace_back(static_cast<uint32_t>(text.size()), id);
  };
  reference.vocabulary().for_each([&](std::string_view token, uint32_t id) {
    add(starts, token, id);
    if (token.starts_with(prefix)) add(continuations, token.substr(prefix.size()), id);
  });
  std::sort(starts.begin(), starts.end());
  std::sort(continuations.begin(), continuations.end());
  starts_ = DoubleArrayTrie(starts);
  continuations_ = DoubleArrayTrie(continuations);
}

bool TrieWordPiece::cover(std::string_view piece, IdBuffer& out) const {
  const char* const end = piece.data() + piece.size();
  const DoubleArrayTrie* trie = &starts_;
  for (const char* at = piece.data(); at < end; trie = &continuations_) {
    const uint32_t found = trie->longest_prefix(at, end);
    if (found == DoubleArrayTrie::kNone) return false;
    at += tokens_[found].first;
    out.append(tokens_[found].second);
  }
  return true;
}

Status TrieWordPiece::encode(std::string_view piece, IdBuffer& out) const {
  const size_t first = out.size();
  const uint64_t max_chars = reference_.max_input_chars_per_word();
  const bool is_short = piece.size() <= max_chars || count_chars(piece) <= max_chars;
  if (is_short && cover(piece, out)) return {};
  out.cut_to(first);
  if (unknown_) {
    out.append(*unknown_);
    return {};
  }
  std::vector<uint32_t> ids;
  LMEMO_TRY(reference_.tokenize(piece, ids));
  out.append(ids);
  return {};
}

}  // namespace lmemo::tokenizer
