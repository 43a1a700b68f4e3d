#include "tokenizer/fast/byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kMaxTokenBytes = 4096;  // The trie is built by recursion.

// From GPT-2's alphabet back to bytes; empty if a character is not of it.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte) bytes_[byte_characters()[byte]] = static_cast<int16_t>(byte);
  }

  bool append_bytes(std::string_view token, std::string& out) const {
    const size_t start = out.size();
    for (size_t at = 0; at < token.size(); at += char_bytes(token, at)) {
      const uint32_t character = char_at(token, at);
      if (character >= bytes_.size() || bytes_[character] < 0) {
        out.resize(start);
        return false;
      }
      out.push_back(static_cast<char>(bytes_[character]));
    }
    return true;
  }

 private:
  std::array<int16_t, 0x180> bytes_;
};

}  // namespace

std::unique_ptr<ByteLevelBpe> ByteLevelBpe::make(const Bpe& bpe, std::vector<KnownPiece>& known) {
  const BpeOptions& options = bpe.options();
  if (!options.continuing_subword_prefix.empty() || !options.end_of_word_suffix.empty() ||
      options.byte_fallback)
    return nullptr;

  struct Place {
    size_t start, size;
    uint32_t id;
  };
  const ByteAlphabet alphabet;
  std::string bytes;
  std::vector<Place> places;
  uint32_t max_id = 0;
  bool has_giant = false;
  places.reserve(bpe.vocabulary().size());
  bytes.reserve(bpe.vocabulary().size() * 8);
  bpe.vocabulary().for_each([&](std::string_view token, uint32_t id) {
    max_id = std::max(max_id, id);
    has_giant = has_giant || token.size() > kMaxTokenBytes;
    const size_t start = bytes.size();
    if (!token.empty() && alphabet.append_bytes(token, bytes))
      places.push_back({start, bytes.size() - start, id});
  });
  if (has_giant || max_id / 4 > bpe.vocabulary().size() + 1000) return nullptr;

  std::vector<MergeEncoder::Token> tokens;
  tokens.reserve(places.size());
  std::vector<uint32_t> atoms;
  for (const Place& place : places) {
    tokens.push_back({std::string_view(bytes).substr(place.start, place.size), place.id});
    if (place.size == 1) atoms.push_back(place.id);
  }
  // Pieces with a byte that is no token are the reference's, and so rare that they may stay whole: what it leaves out
  // makes neighbours of others, so that there are no free borders.
  std::bitset<256> missing;
  missing.set();
  for (const MergeEncoder::Token& token : tokens)
    if (token.text.size() == 1) missing.reset(static_cast<unsigned char>(token.text[0]));
  std::vector<MergeEncoder::Merge> merges;
  merges.reserve(bpe.merges().size());
  for (const BpeMerge& merge : bpe.merges())
    merges.push_back({merge.left, merge.right, merge.id, merge.rank});

  std::optional<MergeEncoder> encoder = MergeEncoder::make(tokens, atoms, merges, max_id + 1);
  if (!encoder) return nullptr;

  auto borders = std::make_shared<CharBorders>();
  WholeTokens wholes;
  for (const MergeEncoder::Token& token : tokens) {
    if (encoder->is_reached(token.id) || options.ignore_merges) borders->add_token(token.text);
    if (encoder->is_reached(token.id) || options.ignore_merges) add_known(known, token.text, token.id);
    if (!encoder->is_reached(token.id) && options.ignore_merges) {
      borders->add_whole(token.text);
      wholes.add(token.text, token.id);
    }
  }
  return std::unique_ptr<ByteLevelBpe>(
      new ByteLevelBpe(bpe, missing, std::move(*encoder), std::move(borders), std::move(wholes)));
}

bool ByteLevelBpe::lacks_byte_of(std::string_view piece) const {
  return missing_.any() && std::any_of(piece.begin(), piece.end(),
                                       [&](char byte) { return missing_[static_cast<unsigned char>(byte)]; });
}

Status ByteLevelBpe::encode(std::string_view piece, IdBuffer& out) const {
  const size_t first = out.size();
  if (lacks_byte_of(piece)) {
    std::vector<uint32_t> ids;
    LMEMO_TRY(reference_.tokenize(bytes_as_characters(piece), ids));
    out.append(ids);
    return {};
  }
  merges_.encode(piece, out);
  if (const std::optional<uint32_t> whole = wholes_.find(piece)) {
    out.cut_to(first);
    out.append(*whole);
  }
  return {};
}

Status ByteLevelBpe::encode_short(std::span<const std::string_view> pieces, IdBuffer& out,
                                  IdRange* ranges) const {
  if (missing_.any()) return PieceModel::encode_short(pieces, out, ranges);
  const size_t first = out.size();
  merges_.encode_short(pieces, out, ranges);
  if (std::none_of(pieces.begin(), pieces.end(),
                   [&](std::string_view piece) { return wholes_.contains(piece); }))
    return {};
  out.cut_to(first);
  return PieceModel::encode_short(pieces, out, ranges);
}

}  // namespace lmemo::tokenizer
