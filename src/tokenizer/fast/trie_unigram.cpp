#include "tokenizer/fast/trie_unigram.h"

#include <algorithm>
#include <array>

#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr uint32_t kNone = DoubleArrayTrie::kNone;

// As it stands in pieces.
std::string with_marks(std::string_view token, std::string_view replacement) {
  std::string marked;
  for (size_t at = 0; at < token.size();) {
    const bool is_mark = token.substr(at).starts_with(replacement);
    if (is_mark)
      marked += ' ';
    else
      marked += token[at];
    at += is_mark ? replacement.size() : 1;
  }
  return marked;
}

}  // namespace

std::unique_ptr<TrieUnigram> TrieUnigram::make(const Unigram& reference, std::string_view replacement) {
  if (!reference.unk_id()) return nullptr;
  std::unique_ptr<TrieUnigram> made(new TrieUnigram());
  made->unk_id_ = *reference.unk_id();
  made->unk_score_ = reference.unk_score();
  if (reference.byte_fallback()) {
    const std::optional<uint32_t> mark = reference.id_of(replacement);
    const bool is_ever_unknown =
        !mark || *mark == made->unk_id_ ||
        reference.token_of(made->unk_id_)->find(replacement) != std::string_view::npos;
    if (is_ever_unknown) return nullptr;
    for (unsigned byte = 0; byte < 256; ++byte)
      made->byte_ids_.push_back(
          reference.id_of(byte_token(static_cast<unsigned char>(byte))).value_or(kNone));
  }

  std::vector<std::pair<std::string, uint32_t>> tokens;
  for (uint32_t id = 0; id < reference.vocab_size(); ++id) {
    const std::string_view token = *reference.token_of(id);
    made->scores_.push_back(reference.score_of(id));
    // No piece has a space that is not a mark.
    if (token.empty() || token.find(' ') != std::string_view::npos) continue;
    tokens.emplace_back(with_marks(token, replacement), id);
  }
  // Of a token that stands twice, the last one counts.
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  tokens.erase(std::unique(tokens.begin(), tokens.end(), is_same), tokens.end());
  made->trie_ =
      DoubleArrayTrie(std::vector<std::pair<std::string_view, uint32_t>>(tokens.begin(), tokens.end()));
  return made;
}

void TrieUnigram::find_best_ends(std::string_view piece, BestEnd* best) const {
  for (size_t i = 0; i <= piece.size(); ++i) best[i].start = kNone;
  best[0].score = 0;
  const char* const end = piece.data() + piece.size();
  for (size_t start = 0, bytes; start < piece.size(); start += bytes) {
    bytes = char_bytes(piece, start);
    const double score_so_far = best[start].score;
    const auto offer = [&](BestEnd& at, uint32_t id, double score) {
      const double sum = score + score_so_far;
      if (at.start == kNone || sum > at.score) at = {sum, static_cast<uint32_t>(start), id};
    };
    bool is_known_character = false;
    trie_.each_prefix(piece.data() + start, end, [&](size_t byte_count, uint32_t id) {
      offer(best[start + byte_count], id, scores_[id]);
      is_known_character = is_known_character || byte_count == bytes;
    });
    if (!is_known_character) offer(best[start + bytes], unk_id_, unk_score_);
  }
}

void TrieUnigram::append_unknown(std::string_view run, IdBuffer& out) const {
  if (const uint32_t id = trie_.find(run); id != kNone) return out.append(id);
  const auto id_of_byte = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  const bool has_bytes = !byte_ids_.empty() && std::all_of(run.begin(), run.end(), [&](char byte) {
    return id_of_byte(byte) != kNone;
  });
  if (!has_bytes) return out.append(unk_id_);
  for (auto byte = run.rbegin(); byte != run.rend(); ++byte) out.append(id_of_byte(*byte));
}

Status TrieUnigram::encode(std::string_view piece, IdBuffer& out) const {
  constexpr size_t kShort = 256;
  std::array<BestEnd, kShort> on_stack;
  std::vector<BestEnd> on_heap;
  BestEnd* best = on_stack.data();
  if (piece.size() >= kShort) {
    on_heap.resize(piece.size() + 1);
    best = on_heap.data();
  }
  find_best_ends(piece, best);

  // From the end to the front; neighbouring unknown characters become one run.
  const size_t first = out.size();
  size_t unknown_end = 0;  // 0: no run of unknown characters is open.
  for (size_t end = piece.size(); end > 0; end = best[end].start) {
    const bool is_unknown = best[end].id == unk_id_;
    if (is_unknown && unknown_end == 0) unknown_end = end;
    if (is_unknown) continue;
    if (unknown_end != 0) append_unknown(piece.substr(end, unknown_end - end), out);
    unknown_end = 0;
    out.append(best[end].id);
  }
  if (unknown_end != 0) append_unknown(piece.substr(0, unknown_end), out);
  std::reverse(out.data() + first, out.data() + out.size());
  return {};
}

}  // namespace lmemo::tokenizer
