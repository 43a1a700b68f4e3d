// A directory of packed training rows: read a row, a block of rows, or what the directory lacks.
//
//   LMEMO_ASSIGN(const auto set, ChunkSet::open("corpus.chunks"));
//   ChunkRows rows;
//   for (uint64_t block = 0; block < set->block_count(); ++block) {
//     LMEMO_TRY(set->read_block(block, rows));
//     for (size_t row = 0; row < rows.row_count(); ++row) use(rows.tokens_of(row), rows.pieces_of(row));
//   }
//
// A row holds at most sequence_length() tokens, of one or more documents. Padding is not stored: a row that is not
// full is short. Every block carries a checksum that is checked before a token of it is shown.
//
// docs/chunks.md is for users, docs/format.md ("Chunks") has the bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

// A document, or a piece of one that did not fit, within a row.
struct ChunkPiece {
  uint32_t length = 0;    // In tokens; never 0.
  uint32_t document = 0;  // Its number within the chunk, in the order of the sources.
  uint32_t offset = 0;    // Of its first token within the document: 0 unless the document was cut.
  bool operator==(const ChunkPiece&) const = default;
};

// The rows of one block, decoded. Reused from block to block it takes no new memory.
struct ChunkRows {
  uint64_t first_row = 0;            // In the chunk, or in the set if a set filled this.
  std::vector<uint32_t> tokens;      // Of all rows, one after the other, without padding.
  std::vector<ChunkPiece> pieces;    // Of all rows, in the order of the tokens.
  std::vector<uint32_t> row_tokens;  // Row i has tokens [row_tokens[i], row_tokens[i + 1]) …
  std::vector<uint32_t> row_pieces;  // … and pieces [row_pieces[i], row_pieces[i + 1]).
  // For who keeps many blocks: set it, and where the vocabulary allows `narrow` has the tokens, and `tokens` is empty.
  bool wants_narrow = false;
  std::vector<uint16_t> narrow;

  size_t row_count() const { return row_tokens.empty() ? 0 : row_tokens.size() - 1; }
  std::span<const uint32_t> tokens_of(size_t row) const {
    return std::span(tokens).subspan(row_tokens[row], row_tokens[row + 1] - row_tokens[row]);
  }
  std::span<const ChunkPiece> pieces_of(size_t row) const {
    return std::span(pieces).subspan(row_pieces[row], row_pieces[row + 1] - row_pieces[row]);
  }
};

// By what a set's rows were made; the same for all of its chunks.
struct ChunkParameters {
  uint32_t sequence_length = 512;
  std::string strategy = "best_fit";  // best_fit, greedy, concat
  std::string compression = "zstd";   // lz4, zstd, none
  std::string level = "default";      // fast, default, max
  std::string text_field = "text";
  std::optional<uint32_t> bos;  // Put before each document, behind it.
  std::optional<uint32_t> eos;
  uint32_t min_tokens = 0;  // Shorter documents are left out, and counted.
  bool deduplicates = false;
  Digest tokenizer;            // Tokenizer::identity().
  std::string tokenizer_name;  // For people. Not part of the identity.
  uint32_t vocab_size = 0;     // Every id is below.
  bool operator==(const ChunkParameters&) const = default;
};

// What became of a chunk's documents. tokens_in == tokens: nothing is lost between tokenizer and rows.
struct ChunkCounts {
  uint64_t rows = 0;
  uint64_t tokens = 0;     // In the rows.
  uint64_t tokens_in = 0;  // Of the documents, with bos and eos.
  uint64_t documents = 0;  // In the rows.
  uint64_t pieces = 0;
  // Left out:
  uint64_t broken = 0;  // Not JSON.
  uint64_t invalid_utf8 = 0;
  uint64_t missing_field = 0;
  uint64_t empty = 0;
  uint64_t too_short = 0;
  uint64_t duplicates = 0;

  uint64_t left_out() const { return broken + invalid_utf8 + missing_field + empty + too_short + duplicates; }
  bool operator==(const ChunkCounts&) const = default;
};

// One chunk file. Never changes: any number of threads may read it.
class ChunkFile {
 public:
  virtual ~ChunkFile() = default;
  // Checks header, footer and description. `corruption` says what is wrong; `incompatible`: another version.
  static Result<std::shared_ptr<const ChunkFile>> open(const std::filesystem::path& file);

  virtual uint64_t number() const = 0;
  virtual const ChunkParameters& parameters() const = 0;
  virtual const ChunkCounts& counts() const = 0;
  virtual Digest plan_entry() const = 0;  // Of the sources' content and of the parameters.
  virtual uint64_t byte_count() const = 0;
  virtual uint32_t block_count() const = 0;
  virtual uint32_t rows_per_block() const = 0;  // All blocks but the last.
  // `first_row` is counted in the chunk.
  virtual Status read_block(uint32_t block, ChunkRows& rows) const = 0;
  // SHA-256 of everything before its description, as the description has it.
  virtual const Digest& content_sha256() const = 0;
  // Reads every byte: all checksums, the SHA-256 of the content, and that rows and tokens add up. Gives the SHA-256 of
  // the whole file.
  virtual Result<Digest> verify() const = 0;
};

struct ChunkSetOptions {
  bool allow_gaps = false;               // Else a set with missing or damaged chunks does not open.
  std::optional<Digest> tokenizer = {};  // Refuse a set of another tokenizer.
};

struct ChunkSummary {
  uint64_t number = 0;
  std::string file;        // Below the set's directory.
  uint64_t first_row = 0;  // In the set.
  uint64_t first_block = 0;
  uint64_t rows = 0;
  uint64_t tokens = 0;
  uint64_t documents = 0;
  uint64_t bytes = 0;
  uint32_t blocks = 0;
  Digest sha256;  // ChunkFile::content_sha256().
};

// All rows of a directory of chunks. What chunks were there when it was opened counts; it does not change afterwards.
// Any number of threads may read; forked processes may go on reading.
class ChunkSet {
 public:
  virtual ~ChunkSet() = default;
  static Result<std::shared_ptr<const ChunkSet>> open(const std::filesystem::path& directory,
                                                      const ChunkSetOptions& options = {});

  virtual const ChunkParameters& parameters() const = 0;
  uint32_t sequence_length() const { return parameters().sequence_length; }
  virtual uint64_t row_count() const = 0;
  virtual uint64_t token_count() const = 0;
  virtual uint64_t block_count() const = 0;
  virtual uint64_t planned_chunks() const = 0;
  virtual std::span<const ChunkSummary> chunks() const = 0;  // Those that are there, by number.
  virtual std::span<const uint64_t> gaps()
      const = 0;  // Numbers of those that are not, or that cannot be read.
  bool is_complete() const { return gaps().empty(); }
  // Of the parameters and of the content of every chunk that is there. A set that grew has another one.
  virtual Digest identity() const = 0;
  // The same over the first `chunk_count` chunks alone: does this set continue the one of a checkpoint?
  virtual Digest identity_of_first(uint64_t chunk_count) const = 0;

  // Which block a row lies in, and the rows of a block: [first_row_of(b), first_row_of(b + 1)).
  virtual uint64_t block_of(uint64_t row) const = 0;
  virtual uint64_t first_row_of(uint64_t block) const = 0;  // block == block_count(): row_count().
  // Decodes a block; `rows.first_row` is counted in the set.
  virtual Status read_block(uint64_t block, ChunkRows& rows) const = 0;
};

}  // namespace lmemo
