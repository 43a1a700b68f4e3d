#include "tokenizer/fast/sentence_bpe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tokenizer/reference/byte_tokens.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

struct Vocab {
  std::string text;  // Of all tokens, blanks for marks.
  std::vector<MergeEncoder::Token> tokens;
  std::vector<uint32_t> atoms;
  uint32_t max_id = 0;
};

// Nothing if a token has a blank of its own.
std::optional<Vocab> vocab_of(const Vocabulary& vocabulary) {
  struct Place {
    size_t start, size;
    uint32_t id;
  };
  Vocab vocab;
  std::vector<Place> places;
  bool has_blank = false;
  vocabulary.for_each([&](std::string_view token, uint32_t id) {
    vocab.max_id = std::max(vocab.max_id, id);
    has_blank = has_blank || token.find(' ') != std::string_view::npos;
    if (token.empty()) return;
    const size_t start = vocab.text.size();
    for (size_t at = 0; at < token.size();) {
      const size_t mark = std::min(token.find(kBlankMark, at), token.size());
      vocab.text.append(token.substr(at, mark - at));
      at = mark;
      if (at == token.size()) break;
      vocab.text.push_back(' ');
      at += kBlankMark.size();
    }
    places.push_back({start, vocab.text.size() - start, id});
  });
  if (has_blank || vocab.max_id / 4 > vocabulary.size() + 1000) return std::nullopt;
  for (const auto& [start, size, id] : places) {
    const std::string_view text = std::string_view(vocab.text).substr(start, size);
    vocab.tokens.push_back({text, id});
    if (char_bytes(text, 0) == size) vocab.atoms.push_back(id);
  }
  return vocab;
}

}  // namespace

std::unique_ptr<SentenceBpe> SentenceBpe::make(const Bpe& bpe, std::vector<KnownPiece>& known) {
  const BpeOptions& options = bpe.options();
  if (!options.byte_fallback || options.ignore_merges || !options.continuing_subword_prefix.empty() ||
      !options.end_of_word_suffix.empty())
    return nullptr;
  if (!bpe.id_of(kBlankMark)) return nullptr;  // It would become three bytes, and a blank one.
  std::optional<Vocab> vocab = vocab_of(bpe.vocabulary());
  if (!vocab) return nullptr;

  std::array<uint32_t, 256> byte_ids;
  std::vector<bool> is_byte(vocab->max_id + 1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::optional<uint32_t> id = bpe.id_of(byte_token(static_cast<unsigned char>(byte)));
    if (!id) return nullptr;
    byte_ids[byte] = *id;
    is_byte[*id] = true;
  }
  std::vector<MergeEncoder::Merge> merges;
  merges.reserve(bpe.merges().size());
  for (const BpeMerge& merge : bpe.merges()) {
    if (is_byte[merge.left] || is_byte[merge.right]) return nullptr;
    merges.push_back({merge.left, merge.right, merge.id, merge.rank});
  }
  std::optional<MergeEncoder> encoder =
      MergeEncoder::make(vocab->tokens, vocab->atoms, merges, vocab->max_id + 1);
  if (!encoder) return nullptr;

  auto borders = std::make_shared<Borders>();
  for (const MergeEncoder::Token& token : vocab->tokens) {
    if (!encoder->is_reached(token.id)) continue;
    add_known(known, token.text, token.id);
    borders->beyond_ascii.add_token(token.text);
    for (size_t i = 1; i < token.text.size(); ++i) {
      const auto before = static_cast<unsigned char>(token.text[i - 1]),
                 after = static_cast<unsigned char>(token.text[i]);
      if ((before | after) < 0x80) borders->has_pair[before].set(after);
    }
  }
  return std::unique_ptr<SentenceBpe>(new SentenceBpe(std::move(*encoder), std::move(borders), byte_ids));
}

Status SentenceBpe::encode(std::string_view piece, IdBuffer& out) const {
  size_t known = 0;  // Where the characters begin that are all tokens.
  for (size_t at = 0; at < piece.size();) {
    const size_t bytes = char_bytes(piece, at);
    if (!merges_.has_token(piece.substr(at, bytes))) {
      if (known < at) merges_.encode(piece.substr(known, at - known), out);
      for (size_t i = 0; i < bytes; ++i) out.append(byte_ids_[static_cast<unsigned char>(piece[at + i])]);
      known = at + bytes;
    }
    at += bytes;
  }
  if (known < piece.size()) merges_.encode(piece.substr(known), out);
  return {};
}

// A template, since every character is asked: one more condition costs a sixth of the time of a warm pass.
template <bool kCutsAtMarks>
class SentenceBpe::Splitter final : public PieceSplitter {
 public:
  explicit Splitter(std::shared_ptr<const Borders> borders) : borders_(std::move(borders)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    size_t count = 0;
    const char* piece = begin;
    const char* at = begin;
    while (at < end && count < capacity) {
      const char* const before = at;
      at += char_bytes({at, static_cast<size_t>(end - at)}, 0);
      if (at < end && !is_free(before, at, end)) continue;
      pieces[count++] = {static_cast<uint32_t>(piece - begin), static_cast<uint32_t>(at - begin)};
      piece = at;
    }
    next = piece;
    return count;
  }

 private:
  bool is_free(const char* before, const char* after, const char* end) const {
    if (kCutsAtMarks && *after == ' ') return true;
    const auto left = static_cast<unsigned char>(*before), right = static_cast<unsigned char>(*after);
    if ((left | right) < 0x80) return !borders_->has_pair[left].test(right);
    return borders_->beyond_ascii.is_free_between(before, after, end);
  }

  const std::shared_ptr<const Borders> borders_;
};

std::unique_ptr<PieceSplitter> SentenceBpe::splitter(bool cuts_at_marks) const {
  if (cuts_at_marks) return std::make_unique<Splitter<true>>(borders_);
  return std::make_unique<Splitter<false>>(borders_);
}

}  // namespace lmemo::tokenizer
