#include "tokenizer/fast/remembering_tokenizer.h"

#include "tokenizer/fast/saved_pieces.h"

namespace lmemo::tokenizer {
namespace {

// 8 MiB for pieces and 1 MiB for their further ids, if they are ever all used.
constexpr unsigned kTableBits = 18;
constexpr unsigned kLongTableBits = 15;

}  // namespace

RememberingTokenizer::RememberingTokenizer(Parts parts)
    : ReferenceTokenizer(std::move(parts)), table_(kTableBits), long_table_(kLongTableBits) {}

Status RememberingTokenizer::append_ids(std::string_view piece, std::vector<uint32_t>& ids) const {
  const bool is_short = piece.size() <= PieceTable::kMaxKeyBytes;
  if (!is_short && !LongPieceTable::takes(piece)) return parts_.model->tokenize(piece, ids);

  const PieceTable::Key key = is_short ? PieceTable::key_of(piece) : PieceTable::Key{};
  const uint64_t hash = key.hash();
  uint32_t known[LongPieceTable::kMaxBytes + 4];
  if (uint32_t* const end =
          is_short ? table_.copy_ids(key, hash, known) : long_table_.copy_ids(piece, known)) {
    ids.insert(ids.end(), std::begin(known), end);
    return {};
  }
  const size_t first = ids.size();
  LMEMO_TRY(parts_.model->tokenize(piece, ids));
  const std::span<const uint32_t> made = std::span(ids).subspan(first);
  if (made.empty() || made.size() > piece.size()) return {};
  is_short ? table_.put(key, hash, made) : long_table_.put(piece, made);
  return {};
}

Status RememberingTokenizer::save_pieces(const std::filesystem::path& path) const {
  return save_pieces_to(path, table_, long_table_, parts_.identity);
}

Result<size_t> RememberingTokenizer::load_pieces(const std::filesystem::path& path) const {
  return load_pieces_from(path, parts_.identity, table_, long_table_);
}

}  // namespace lmemo::tokenizer
