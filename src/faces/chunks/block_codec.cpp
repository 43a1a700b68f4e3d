#include "faces/chunks/block_codec.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/byte_reader.h"

namespace lmemo::chunks {
namespace {

constexpr uint32_t kMaxTokensPerBlock = 1u << 25;

Error damaged(const std::string& what) { return {ErrorCode::corruption, "block of rows: " + what}; }

template <typename Get>
void write_planes(std::byte*& to, size_t count, const Get& get) {
  for (size_t index = 0; index < count; ++index) {
    const uint32_t number = get(index);
    for (size_t plane = 0; plane < 4; ++plane)
      to[plane * count + index] = static_cast<std::byte>(number >> (8 * plane));
  }
  to += 4 * count;
}

template <typename Set>
void read_planes(const std::byte*& from, size_t count, const Set& set) {
  for (size_t index = 0; index < count; ++index) {
    uint32_t number = 0;
    for (size_t plane = 0; plane < 4; ++plane)
      number |= static_cast<uint32_t>(from[plane * count + index]) << (8 * plane);
    set(index, number);
  }
  from += 4 * count;
}

template <typename Number>
void write_numbers(std::span<const uint32_t> tokens, std::span<const uint32_t> ranks, std::byte* to) {
  for (size_t index = 0; index < tokens.size(); ++index) {
    const auto number = static_cast<Number>(ranks.empty() ? tokens[index] : ranks[tokens[index]]);
    std::memcpy(to + index * sizeof(Number), &number, sizeof number);
  }
}

void write_tokens(std::span<const uint32_t> tokens, const BlockCoding& coding, std::byte* to) {
  switch (coding.token_bytes) {
    case 1: return write_numbers<uint8_t>(tokens, coding.ranks, to);
    case 2: return write_numbers<uint16_t>(tokens, coding.ranks, to);
    case 4: return write_numbers<uint32_t>(tokens, coding.ranks, to);
    default:
      for (const uint32_t token : tokens) {
        const uint32_t number = coding.ranks.empty() ? token : coding.ranks[token];
        for (unsigned byte = 0; byte < 3; ++byte) *to++ = static_cast<std::byte>(number >> (8 * byte));
      }
  }
}

std::span<std::byte> at_least(std::vector<std::byte>& buffer, size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return std::span(buffer).first(bytes);
}

struct StoredSection {
  Compression compression;
  uint32_t bytes;
};

// Writes `plain` to `value` from `start` on, compressed if that helps.
Result<StoredSection> store_section(const BlockCoding& coding, Bytes plain, size_t start,
                                    std::vector<std::byte>& value) {
  const size_t most = std::max(plain.size(), max_compressed_bytes(coding.compression, plain.size()));
  const std::span<std::byte> out = at_least(value, start + most).subspan(start);
  if (coding.compression != Compression::none) {
    LMEMO_ASSIGN(const size_t stored, compress(coding.compression, coding.level, plain, out));
    if (stored < plain.size()) return StoredSection{coding.compression, static_cast<uint32_t>(stored)};
  }
  std::copy(plain.begin(), plain.end(), out.begin());
  return StoredSection{Compression::none, static_cast<uint32_t>(plain.size())};
}

// The bytes of a section; those of one stored as it is are not copied.
Result<Bytes> plain_section(Compression compression, Bytes stored, size_t plain_bytes,
                            std::vector<std::byte>& buffer) {
  if (compression == Compression::none) {
    if (stored.size() != plain_bytes) return damaged("a section of another length than it should have");
    return stored;
  }
  const std::span<std::byte> out = at_least(buffer, plain_bytes);
  LMEMO_TRY(decompress(compression, stored, out));
  return Bytes(out);
}

// The loops below find out in passing whether anything was out of range: `seen` has the high bit set if so.
template <typename Number, typename Token>
uint32_t read_ranked(Bytes bytes, std::span<const uint32_t> ids, std::span<Token> tokens) {
  const std::byte* const from = bytes.data();
  uint32_t seen = 0;
  for (size_t index = 0; index < tokens.size(); ++index) {
    const uint32_t token = ids[load_le<Number>(from + index * sizeof(Number))];
    tokens[index] = static_cast<Token>(token);
    seen |= token;
  }
  return seen;
}

template <typename Number, typename Token>
uint32_t read_plain(Bytes bytes, std::span<Token> tokens) {
  // In steps of a known length, which compilers turn into vector instructions.
  constexpr size_t kStep = 64;
  const std::byte* from = bytes.data();
  Token* to = tokens.data();
  Token* const end = to + tokens.size();
  Number largest[kStep] = {};
  for (; end - to >= static_cast<ptrdiff_t>(kStep); to += kStep, from += kStep * sizeof(Number)) {
    Number step[kStep];
    std::memcpy(step, from, sizeof step);
    for (size_t index = 0; index < kStep; ++index)
      largest[index] = step[index] > largest[index] ? step[index] : largest[index];
    for (size_t index = 0; index < kStep; ++index) to[index] = static_cast<Token>(step[index]);
  }
  for (; to != end; ++to, from += sizeof(Number)) {
    const auto token = load_le<Number>(from);
    *to = static_cast<Token>(token);
    largest[0] = std::max(largest[0], token);
  }
  return *std::max_element(largest, largest + kStep);
}

template <typename Token>
uint32_t read_wide(Bytes bytes, unsigned width, std::span<const uint32_t> ids, bool has_ranks,
                   std::span<Token> tokens) {
  uint32_t largest = 0;
  const std::byte* from = bytes.data();
  for (Token& out : tokens) {
    uint32_t number = 0;
    std::memcpy(&number, from, width);
    from += width;
    const uint32_t token = !has_ranks ? number : number < ids.size() ? ids[number] : kNoToken;
    out = static_cast<Token>(token);
    largest = std::max(largest, token);
  }
  return largest;
}

template <typename Token>
Status read_tokens(Bytes bytes, unsigned width, const BlockFrame& frame, std::vector<Token>& out) {
  const std::span<Token> tokens(out);
  uint32_t largest;
  if (frame.has_ranks && width <= 2) {
    assert(frame.ids.size() == (width == 1 ? 256u : 65536u));
    const uint32_t seen = width == 1 ? read_ranked<uint8_t>(bytes, frame.ids, tokens)
                                     : read_ranked<uint16_t>(bytes, frame.ids, tokens);
    // Ids in the table were checked against the vocabulary when it was read.
    largest = (seen >> 31) != 0 ? kNoToken : 0;
  } else if (!frame.has_ranks && width != 3) {
    largest = width == 1   ? read_plain<uint8_t>(bytes, tokens)
              : width == 2 ? read_plain<uint16_t>(bytes, tokens)
                           : read_plain<uint32_t>(bytes, tokens);
  } else {
    largest = read_wide(bytes, width, frame.ids, frame.has_ranks, tokens);
  }
  if (!tokens.empty() && largest >= frame.vocab_size)
    return damaged("a token that the vocabulary does not have");
  return {};
}

// From lengths to positions, with everything checked that readers rely on.
Status finish_boundaries(const BlockFrame& frame, uint32_t token_count, ChunkRows& rows) {
  uint64_t piece = 0, token = 0;
  for (uint32_t row = 0; row < frame.rows; ++row) {
    const uint64_t last = piece + rows.row_pieces[row];  // A count so far.
    if (last > rows.pieces.size()) return damaged("rows of more pieces than it has");
    const uint64_t first_token = token;
    rows.row_pieces[row] = static_cast<uint32_t>(piece);
    rows.row_tokens[row] = static_cast<uint32_t>(token);
    for (; piece < last; ++piece) {
      if (rows.pieces[piece].length == 0) return damaged("a piece of no tokens");
      token += rows.pieces[piece].length;
    }
    if (token - first_token > frame.sequence_length) return damaged("a row that is too long");
  }
  if (piece != rows.pieces.size() || token != token_count) return damaged("pieces and tokens do not add up");
  rows.row_pieces[frame.rows] = static_cast<uint32_t>(piece);
  rows.row_tokens[frame.rows] = static_cast<uint32_t>(token);
  return {};
}

}  // namespace

Result<Bytes> encode_block(const RowsToWrite& rows, const BlockCoding& coding, BlockBuffers& buffers) {
  BlockHeader header;
  header.rows = static_cast<uint32_t>(rows.piece_counts.size());
  header.pieces = static_cast<uint32_t>(rows.pieces.size());
  header.tokens = static_cast<uint32_t>(rows.token_count);
  header.token_bytes = static_cast<uint8_t>(coding.token_bytes);
  assert(rows.token_count <= kMaxTokensPerBlock);

  const std::span<std::byte> boundaries =
      at_least(buffers.plain, 4 * (rows.piece_counts.size() + 3 * rows.pieces.size()));
  std::byte* to = boundaries.data();
  write_planes(to, rows.piece_counts.size(), [&](size_t row) { return rows.piece_counts[row]; });
  write_planes(to, rows.pieces.size(), [&](size_t piece) { return rows.pieces[piece].length; });
  write_planes(to, rows.pieces.size(), [&](size_t piece) { return rows.pieces[piece].document; });
  write_planes(to, rows.pieces.size(), [&](size_t piece) { return rows.pieces[piece].offset; });
  LMEMO_ASSIGN(const StoredSection of_boundaries,
               store_section(coding, boundaries, sizeof header, buffers.value));
  header.boundaries_compression = of_boundaries.compression;
  header.stored_boundaries = of_boundaries.bytes;

  const std::span<std::byte> tokens = at_least(buffers.plain, rows.token_count * coding.token_bytes);
  to = tokens.data();
  for (size_t piece = 0; piece < rows.pieces.size(); ++piece) {
    const size_t length = rows.pieces[piece].length;
    write_tokens({rows.piece_tokens[piece], length}, coding, to);
    to += length * coding.token_bytes;
  }
  const size_t tokens_start = sizeof header + of_boundaries.bytes;
  LMEMO_ASSIGN(const StoredSection of_tokens, store_section(coding, tokens, tokens_start, buffers.value));
  header.tokens_compression = of_tokens.compression;
  header.stored_tokens = of_tokens.bytes;
  std::memcpy(buffers.value.data(), &header, sizeof header);
  return Bytes(buffers.value).first(tokens_start + of_tokens.bytes);
}

Status decode_block(Bytes value, const BlockFrame& frame, ChunkRows& rows) {
  ByteReader reader(value);
  const auto header = reader.read<BlockHeader>();
  if (!reader.ok() || header.rows != frame.rows) return damaged("another number of rows than the chunk says");
  if (header.tokens > uint64_t{header.rows} * frame.sequence_length || header.tokens > kMaxTokensPerBlock ||
      header.pieces > header.tokens)
    return damaged("more tokens or pieces than its rows can hold");
  if (header.token_bytes < 1 || header.token_bytes > 4) return damaged("tokens of no known width");
  if (frame.has_ranks && header.token_bytes <= 2 && frame.ids.size() != size_t{1} << (8 * header.token_bytes))
    return damaged("ranks of another width than their table");
  const Bytes boundaries = reader.take(header.stored_boundaries), tokens = reader.take(header.stored_tokens);
  if (!reader.is_at_end()) return damaged("its sections do not fill it");

  thread_local std::vector<std::byte> buffer;
  LMEMO_ASSIGN(const Bytes plain,
               plain_section(header.boundaries_compression, boundaries,
                             4 * (size_t{header.rows} + 3 * size_t{header.pieces}), buffer));
  rows.row_pieces.resize(size_t{header.rows} + 1);
  rows.row_tokens.resize(size_t{header.rows} + 1);
  rows.pieces.resize(header.pieces);
  const std::byte* from = plain.data();
  read_planes(from, header.rows, [&](size_t row, uint32_t number) { rows.row_pieces[row] = number; });
  read_planes(from, header.pieces,
              [&](size_t piece, uint32_t number) { rows.pieces[piece].length = number; });
  read_planes(from, header.pieces,
              [&](size_t piece, uint32_t number) { rows.pieces[piece].document = number; });
  read_planes(from, header.pieces,
              [&](size_t piece, uint32_t number) { rows.pieces[piece].offset = number; });
  LMEMO_TRY(finish_boundaries(frame, header.tokens, rows));

  LMEMO_ASSIGN(const Bytes numbers, plain_section(header.tokens_compression, tokens,
                                                  size_t{header.tokens} * header.token_bytes, buffer));
  const bool is_narrow = rows.wants_narrow && frame.vocab_size <= 1u << 16;
  rows.tokens.resize(is_narrow ? 0 : header.tokens);
  if (rows.narrow.capacity() < header.tokens) rows.narrow.clear();  // So that it grows to just this.
  rows.narrow.resize(is_narrow ? header.tokens : 0);
  return is_narrow ? read_tokens(numbers, header.token_bytes, frame, rows.narrow)
                   : read_tokens(numbers, header.token_bytes, frame, rows.tokens);
}

}  // namespace lmemo::chunks
