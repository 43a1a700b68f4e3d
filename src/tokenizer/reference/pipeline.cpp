#include "tokenizer/reference/pipeline.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/utf8.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {

Status expect_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    at = behind_ascii_blocks(text, at);
    if (at == text.size()) break;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = utf8_length(text.substr(at));
    if (length == 0)
      return Error{ErrorCode::invalid_argument, "text is not UTF-8 at byte " + std::to_string(at)};
    at += length;
  }
  return {};
}

ReferenceTokenizer::ReferenceTokenizer(Parts parts) : parts_(std::move(parts)) {
  vocab_size_ = parts_.model->vocab_size();
  id_limit_ = parts_.model->id_limit();
  for (const auto& [token, id] : parts_.added_tokens.ids()) {
    vocab_size_ += !parts_.model->id_of(token);
    id_limit_ = std::max(id_limit_, uint64_t{id} + 1);
  }
}

// First the added tokens of the raw text; each stretch between them is normalized on its own, and searched again for
// the added tokens that are normalized. Nothing empty stays.
Result<std::vector<ReferenceTokenizer::Stretch>> ReferenceTokenizer::stretches_of(
    std::string_view text) const {
  std::vector<Stretch> stretches;
  LMEMO_ASSIGN(const std::vector<Segment> raw, parts_.added_tokens.split_raw(text));
  for (const Segment& segment : raw) {
    if (segment.start == segment.end) continue;
    if (segment.id) {
      stretches.push_back({{}, segment.id});
      continue;
    }
    std::string normalized(text.substr(segment.start, segment.end - segment.start));
    bool is_start = segment.start == 0;
    if (parts_.normalizer) {
      is_start = is_start && !parts_.normalizer->drops_start(normalized);
      normalized = parts_.normalizer->normalize(normalized);
    }
    LMEMO_ASSIGN(const std::vector<Segment> parts, parts_.added_tokens.split_normalized(normalized));
    for (const Segment& part : parts) {
      if (part.start == part.end) continue;
      const bool starts_text = is_start && part.start == 0;
      stretches.push_back({{normalized.substr(part.start, part.end - part.start), starts_text}, part.id});
    }
  }
  return stretches;
}

Result<std::vector<uint32_t>> ReferenceTokenizer::ids_of(std::string_view text) const {
  std::vector<uint32_t> ids;
  LMEMO_ASSIGN(const std::vector<Stretch> stretches, stretches_of(text));
  std::vector<Piece> pieces;
  for (const Stretch& stretch : stretches) {
    if (stretch.id) {
      ids.push_back(*stretch.id);
      continue;
    }
    pieces.assign(1, stretch.piece);
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->split(pieces);
    for (const Piece& piece : pieces)
      if (!piece.text.empty()) LMEMO_TRY(append_ids(piece.text, ids));
  }
  return ids;
}

Result<std::vector<uint32_t>> ReferenceTokenizer::encode(std::string_view text,
                                                         const EncodeOptions& options) const {
  LMEMO_TRY(expect_utf8(text));
  const size_t added =
      parts_.post_processor && options.add_special_tokens ? parts_.post_processor->added_count() : 0;
  LMEMO_ASSIGN(const LengthRules rules, length_rules_for(options, parts_.truncation, parts_.padding, added));
  LMEMO_ASSIGN(std::vector<uint32_t> ids, ids_of(text));
  if (rules.truncation) rules.truncation->apply(ids, added);
  if (parts_.post_processor) {
    std::vector<Ids> sequences(1);
    sequences[0] = std::move(ids);
    ids.clear();
    for (const Ids& sequence :
         parts_.post_processor->process(std::move(sequences), options.add_special_tokens))
      ids.insert(ids.end(), sequence.begin(), sequence.end());
  }
  if (rules.padding) rules.padding->apply(ids, rules.padding->target(ids.size()));
  return ids;
}

Result<TokenBatch> ReferenceTokenizer::encode_batch(std::span<const std::string_view> texts,
                                                    const EncodeOptions& options, unsigned threads) const {
  std::vector<std::vector<uint32_t>> encoded(texts.size());
  std::vector<std::optional<Error>> errors(texts.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < texts.size();) {
      Result<std::vector<uint32_t>> ids = encode(texts[i], options);
      if (ids.ok()) {
        encoded[i] = std::move(ids).value();
      } else {
        errors[i] = ids.error();
      }
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<size_t>(threads, texts.size()));
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < errors.size(); ++i)
    if (errors[i]) return Error{errors[i]->code, "text " + std::to_string(i) + ": " + errors[i]->message};

  size_t longest = 0;
  for (const std::vector<uint32_t>& ids : encoded) longest = std::max(longest, ids.size());
  // Each has been padded by itself, and the rules have been found sound.
  LMEMO_ASSIGN(const LengthRules rules, length_rules_for(options, parts_.truncation, parts_.padding, 0));
  const uint64_t padded = rules.padding ? rules.padding->target(longest) : 0;
  TokenBatch batch;
  batch.offsets.reserve(texts.size() + 1);
  for (std::vector<uint32_t>& ids : encoded) {
    if (rules.padding) rules.padding->apply(ids, padded);
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.offsets.push_back(batch.ids.size());
    ids = {};
  }
  return batch;
}

std::optional<uint32_t> ReferenceTokenizer::token_to_id(std::string_view token) const {
  const std::optional<uint32_t> id = parts_.added_tokens.id_of(token);
  return id ? id : parts_.model->id_of(token);
}

std::optional<std::string> ReferenceTokenizer::id_to_token(uint32_t id) const {
  std::optional<std::string_view> token = parts_.added_tokens.token_of(id);
  if (!token) token = parts_.model->token_of(id);
  if (!token) return std::nullopt;
  return std::string(*token);
}

Result<std::string> ReferenceTokenizer::decode(std::span<const uint32_t> ids,
                                               const DecodeOptions& options) const {
  std::vector<std::string> tokens;
  for (const uint32_t id : ids) {
    std::optional<std::string> token = id_to_token(id);
    if (!token || (options.skip_special_tokens && parts_.added_tokens.is_special(*token))) continue;
    tokens.push_back(std::move(*token));
  }
  std::string_view between = " ";
  if (parts_.decoder) {
    LMEMO_ASSIGN(tokens, parts_.decoder->decode(std::move(tokens)));
    between = "";
  }
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) text.append(i == 0 ? "" : between).append(tokens[i]);
  return text;
}

}  // namespace lmemo::tokenizer
