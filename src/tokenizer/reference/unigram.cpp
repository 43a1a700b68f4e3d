#include "tokenizer/reference/unigram.h"

#include <algorithm>
#include <limits>

#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr uint32_t kNoToken = NumberTable::kNone;

Error missing_unk() {
  return {ErrorCode::invalid_argument, "unknown character, and the model has no unk_id"};
}

}  // namespace

Unigram::Unigram(std::span<const ScoredToken> tokens, std::optional<uint32_t> unk_id, bool byte_fallback)
    : unk_id_(unk_id), byte_fallback_(byte_fallback) {
  double min_score = std::numeric_limits<double>::infinity();
  starts_.reserve(tokens.size() + 1);
  scores_.reserve(tokens.size());
  for (const auto& [token, score, is_whole] : tokens) {
    const uint32_t node = trie_.add(token);
    if (node >= id_at_.size()) id_at_.resize(trie_.node_count(), kNoToken);
    id_at_[node] = static_cast<uint32_t>(scores_.size());
    starts_.push_back(text_.size());
    text_.append(token);
    scores_.push_back(score);
    min_score = std::min(min_score, score);
  }
  starts_.push_back(text_.size());
  unk_score_ = min_score - kUnknownPenalty;
}

std::optional<uint32_t> Unigram::id_of(std::string_view token) const {
  const std::optional<uint32_t> node = trie_.find(token);
  if (!node || *node >= id_at_.size() || id_at_[*node] == kNoToken) return std::nullopt;
  return id_at_[*node];
}

std::optional<std::string_view> Unigram::token_of(uint32_t id) const {
  if (id >= scores_.size()) return std::nullopt;
  return std::string_view(text_).substr(starts_[id], starts_[id + 1] - starts_[id]);
}

Result<std::vector<Unigram::BestEnd>> Unigram::best_ends(std::string_view piece) const {
  std::vector<BestEnd> best(piece.size() + 1);
  for (size_t start = 0; start < piece.size(); start += char_bytes(piece, start)) {
    const double score_so_far = best[start].score;
    // Of equal scores the first one found stays: the longest last token, since starts come from left to right.
    const auto offer = [&](size_t end, uint32_t id, double score) {
      const double sum = score + score_so_far;
      if (!best[end].start || sum > best[end].score) best[end] = {id, sum, start};
    };

    const size_t first_end = start + char_bytes(piece, start);
    bool is_known_character = false;
    std::optional<uint32_t> node = ByteTrie::kRoot;
    for (size_t end = start + 1; end <= piece.size(); ++end) {
      node = trie_.step(*node, piece[end - 1]);
      if (!node) break;
      const uint32_t id = id_at_[*node];
      if (id == kNoToken) continue;
      offer(end, id, scores_[id]);
      is_known_character = is_known_character || end == first_end;
    }
    if (is_known_character) continue;
    if (unk_id_) {
      offer(first_end, *unk_id_, unk_score_);
    } else if (!best[first_end].start || unk_score_ + score_so_far > best[first_end].score) {
      return missing_unk();
    }
  }
  return best;
}

// A token, or a run of unknown characters.
Status Unigram::emit(std::string_view part, std::vector<uint32_t>& ids) const {
  if (const std::optional<uint32_t> id = id_of(part)) {
    ids.push_back(*id);
    return {};
  }
  if (byte_fallback_) {
    std::vector<uint32_t> bytes;
    for (const char byte : part)
      if (const std::optional<uint32_t> id = id_of(byte_token(static_cast<unsigned char>(byte))))
        bytes.push_back(*id);
    if (bytes.size() == part.size()) {
      ids.insert(ids.end(), bytes.begin(), bytes.end());
      return {};
    }
  }
  if (!unk_id_) return missing_unk();
  ids.push_back(*unk_id_);
  return {};
}

Status Unigram::tokenize(std::string_view piece, std::vector<uint32_t>& ids) const {
  if (piece.empty()) return {};
  LMEMO_ASSIGN(const std::vector<BestEnd> best, best_ends(piece));

  // From the end to the front; neighbouring unknown characters become one part.
  std::vector<std::string_view> parts;
  size_t unknown_end = 0;  // 0: no run of unknown characters is open.
  for (size_t end = piece.size(); end > 0;) {
    const size_t start = *best[end].start;
    const bool is_unknown = unk_id_ && best[end].id == *unk_id_;
    if (is_unknown && unknown_end == 0) unknown_end = end;
    if (!is_unknown) {
      if (unknown_end != 0) parts.push_back(piece.substr(end, unknown_end - end));
      unknown_end = 0;
      parts.push_back(piece.substr(start, end - start));
    }
    end = start;
  }
  if (unknown_end != 0) parts.push_back(piece.substr(0, unknown_end));

  for (auto part = parts.rbegin(); part != parts.rend(); ++part) LMEMO_TRY(emit(*part, ids));
  return {};
}

}  // namespace lmemo::tokenizer
