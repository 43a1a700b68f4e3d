#include "faces/chunks/chunk_writer.h"

#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "faces/chunks/block_codec.h"
#include "faces/chunks/build_progress.h"
#include "faces/chunks/token_ranks.h"
#include "packing/packer.h"
#include "store/segment_writer.h"

namespace lmemo::chunks {
namespace {

struct Coding {
  PackStrategy strategy;
  BlockCoding block;
};

Result<Coding> coding_of(const ChunkParameters& parameters) {
  const auto strategy = pack_strategy_named(parameters.strategy);
  const auto compression = compression_named(parameters.compression);
  const auto level = parameters.level == "fast"      ? std::optional(CompressionLevel::fast)
                     : parameters.level == "default" ? std::optional(CompressionLevel::standard)
                     : parameters.level == "max"     ? std::optional(CompressionLevel::max)
                                                     : std::nullopt;
  if (!strategy || !compression || !level)
    return Error{ErrorCode::invalid_argument, "no such way to write chunks: " + parameters.strategy + ", " +
                                                  parameters.compression + ", " + parameters.level};
  return Coding{*strategy, {.compression = *compression, .level = *level}};
}

// The rows [first, last) of a chunk.
void gather_rows(const PackedRows& packed, const ChunkContent& content, size_t first, size_t last,
                 RowsToWrite& rows) {
  rows.pieces.clear();
  rows.piece_tokens.clear();
  rows.piece_counts.clear();
  rows.token_count = 0;
  for (size_t row = first; row < last; ++row) {
    for (const Piece& piece : packed.row(row)) {
      rows.pieces.push_back({piece.length, piece.document, piece.offset});
      rows.piece_tokens.push_back(content.tokens.data() + content.offsets[piece.document] + piece.offset);
      rows.token_count += piece.length;
    }
    rows.piece_counts.push_back(packed.row_starts[row + 1] - packed.row_starts[row]);
  }
}

Status append(SegmentWriter& writer, const Key& key, Bytes value) {
  const NewRecord record{RecordType::value, key.digest(), text_of(key.encoding()), value, 0, 0};
  return writer.append({&record, 1});
}

class ChunkWriting {
 public:
  ChunkWriting(const ChunkParameters& parameters, const ChunkContent& content, ChunkSteps* steps)
      : parameters_(parameters),
        content_(content),
        steps_(steps),
        key_(chunk_key(content.number, parameters, content.ranges)) {}

  Result<WrittenChunk> write(FileSystem& files, const Path& path) {
    LMEMO_ASSIGN(Coding coding, coding_of(parameters_));
    LMEMO_TRY(check());
    std::vector<uint32_t> lengths(content_.offsets.size() - 1);
    for (size_t document = 0; document < lengths.size(); ++document)
      lengths[document] = static_cast<uint32_t>(content_.offsets[document + 1] - content_.offsets[document]);
    const PackedRows packed = pack(coding.strategy, lengths, parameters_.sequence_length);
    LMEMO_TRY(reach(BuildPhase::pack, 1));

    uint64_t nonce;
    std::memcpy(&nonce, key_.digest().bytes.data(), sizeof nonce);
    // More than any coding takes; a mapping that is not touched costs nothing.
    const uint64_t capacity = 16 * (content_.tokens.size() + 4 * packed.pieces.size()) + (uint64_t{64} << 20);
    LMEMO_ASSIGN(auto writer, SegmentWriter::create(files, path, nonce | 1, 0, capacity));
    auto written = write_records(*writer, coding.block, packed);
    if (written.ok()) {
      auto hashed = finish(files, *writer, *written);
      if (hashed.ok()) return hashed;
      written = hashed.error();
    }
    // The first error is the one to tell.
    writer.reset();
    [[maybe_unused]] const Status removed = files.remove(path);
    return written.error();
  }

 private:
  Status check() const {
    if (content_.tokens.size() >= UINT32_MAX || content_.offsets.size() - 1 >= UINT32_MAX)
      return Error{ErrorCode::invalid_argument,
                   "chunk " + std::to_string(content_.number) + " has " +
                       std::to_string(content_.tokens.size()) +
                       " tokens; at most 4 billion; ask for fewer --chunk-sequences"};
    return {};
  }

  Status reach(BuildPhase phase, double part) { return steps_ ? steps_->reach(phase, part) : Status(); }

  Result<Description> write_records(SegmentWriter& writer, BlockCoding coding, const PackedRows& packed) {
    Description description;
    description.number = content_.number;
    description.ranges = content_.ranges;
    description.counts = content_.left_out;
    description.counts.rows = packed.row_count();
    description.counts.tokens_in = content_.tokens.size();
    description.counts.pieces = packed.pieces.size();
    for (size_t document = 0; document + 1 < content_.offsets.size(); ++document)
      description.counts.documents += content_.offsets[document + 1] > content_.offsets[document];
    description.rows_per_block = rows_per_block(parameters_);

    // With ranks zstd's output is 5 to 9 % smaller, and a large vocabulary needs fewer bytes. But ranking takes a sixth of the
    // time of writing: where size is not all that counts, ids that fit two bytes stay as they are.
    std::optional<TokenRanks> ranks;
    coding.token_bytes = bytes_for(parameters_.vocab_size);
    const bool is_size_all = coding.compression == Compression::zstd && coding.level == CompressionLevel::max;
    if (is_size_all || coding.token_bytes > 2) {
      LMEMO_ASSIGN(ranks, TokenRanks::of(content_.tokens, parameters_.vocab_size));
      coding.ranks = ranks->ranks();
      coding.token_bytes = bytes_for(ranks->size());
    } else {
      LMEMO_TRY(check_tokens(content_.tokens, parameters_.vocab_size));
    }

    BlockBuffers buffers;
    RowsToWrite rows;
    for (size_t first = 0; first < packed.row_count(); first += description.rows_per_block) {
      const size_t last = std::min(first + description.rows_per_block, packed.row_count());
      gather_rows(packed, content_, first, last, rows);
      LMEMO_ASSIGN(const Bytes value, encode_block(rows, coding, buffers));
      const auto block = static_cast<uint32_t>(description.block_offsets.size());
      description.block_offsets.push_back(writer.byte_count());
      description.counts.tokens += rows.token_count;
      LMEMO_TRY(append(writer, block_key(block), value));
      LMEMO_TRY(
          reach(BuildPhase::compress, static_cast<double>(last) / static_cast<double>(packed.row_count())));
    }
    if (ranks && packed.row_count() > 0) {
      description.ids_offset = writer.byte_count();
      LMEMO_TRY(append(writer, ids_key(), bytes_of(ranks->encode())));
    }
    hasher_.update(writer.mapping()->bytes().first(writer.byte_count()));
    hashed_bytes_ = writer.byte_count();
    description.sha256 = hasher_.so_far();
    LMEMO_TRY(append(writer, key_, bytes_of(encode(description))));
    return description;
  }

  Result<WrittenChunk> finish(FileSystem& files, SegmentWriter& writer, const Description& description) {
    LMEMO_TRY(writer.seal());
    LMEMO_ASSIGN(const auto mapping, files.map(writer.path()));
    if (!mapping) return Error{ErrorCode::io_error, "somebody removed " + writer.path().string()};
    hasher_.update(mapping->bytes().subspan(hashed_bytes_));
    WrittenChunk written;
    written.counts = description.counts;
    written.blocks = static_cast<uint32_t>(description.block_offsets.size());
    written.bytes = mapping->bytes().size();
    written.sha256 = hasher_.finish();
    written.content_sha256 = description.sha256;
    written.key = key_.digest();
    return written;
  }

  const ChunkParameters& parameters_;
  const ChunkContent& content_;
  ChunkSteps* const steps_;  // Null if nobody wants to know.
  const Key key_;
  Sha256 hasher_;
  uint64_t hashed_bytes_ = 0;
};

}  // namespace

uint32_t rows_per_block(const ChunkParameters& parameters) {
  const uint32_t tokens = parameters.compression == "zstd" ? kTokensPerZstdBlock : kTokensPerBlock;
  return std::max(1u, tokens / parameters.sequence_length);
}

Result<WrittenChunk> write_chunk(FileSystem& files, const Path& path, const ChunkParameters& parameters,
                                 const ChunkContent& content, ChunkSteps* steps) {
  return ChunkWriting(parameters, content, steps).write(files, path);
}

}  // namespace lmemo::chunks
