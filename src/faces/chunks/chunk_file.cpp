#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "faces/chunks/block_codec.h"
#include "faces/chunks/chunk_records.h"
#include "faces/chunks/token_ranks.h"
#include "store/segment.h"

namespace lmemo {
namespace {

using namespace chunks;

Error damaged(const Path& file, const std::string& what) {
  return {ErrorCode::corruption, "chunk " + file.string() + ": " + what + "; run `lmemo chunks repair`"};
}

class SegmentChunk final : public ChunkFile {
 public:
  static Result<std::shared_ptr<const ChunkFile>> open(const Path& path) {
    LMEMO_ASSIGN(std::shared_ptr<const MappedFile> mapping, real_file_system().map(path));
    if (!mapping) return Error{ErrorCode::io_error, "there is no chunk " + path.string()};
    auto chunk = std::make_shared<SegmentChunk>();
    chunk->path_ = path;
    chunk->file_ = mapping->bytes();
    LMEMO_ASSIGN(chunk->segment_, Segment::read(std::move(mapping), path.filename().string()));
    LMEMO_TRY(chunk->read_description());
    LMEMO_TRY(chunk->read_ids());
    return std::shared_ptr<const ChunkFile>(std::move(chunk));
  }

  uint64_t number() const override { return description_.number; }
  const ChunkParameters& parameters() const override { return parameters_; }
  const ChunkCounts& counts() const override { return description_.counts; }
  Digest plan_entry() const override { return key_; }
  uint64_t byte_count() const override { return file_.size(); }
  uint32_t block_count() const override { return static_cast<uint32_t>(description_.block_offsets.size()); }
  uint32_t rows_per_block() const override { return description_.rows_per_block; }
  const Digest& content_sha256() const override { return description_.sha256; }

  Status read_block(uint32_t block, ChunkRows& rows) const override {
    if (block >= block_count())
      return Error{ErrorCode::invalid_argument, "block " + std::to_string(block) + " of a chunk of " +
                                                    std::to_string(block_count()) + " blocks"};
    const std::optional<RecordView> record = block_record(block);
    if (!record) return damaged_block(block, "its checksum is wrong");
    if (Status status = decode_block(record->value, frame_of(block), rows); !status.ok()) {
      rows = {};
      return damaged_block(block, status.error().message);
    }
    rows.first_row = uint64_t{block} * description_.rows_per_block;
    return {};
  }

  Result<Digest> verify() const override {
    if (!segment_->fields()) return damaged(path_, "the fields block is damaged");
    Sha256 hasher;
    hasher.update(file_.first(description_offset_));
    if (hasher.so_far() != description_.sha256) {
      for (uint32_t block = 0; block < block_count(); ++block)
        if (!block_record(block)) return damaged_block(block, "its checksum is wrong");
      return damaged(path_, "SHA-256 " + hasher.so_far().hex() + ", expected " + description_.sha256.hex());
    }
    uint64_t rows = 0, tokens = 0, pieces = 0;
    for (uint32_t block = 0; block < block_count(); ++block) {
      const std::optional<RecordView> record = block_record(block);
      if (!record || record->value.size() < sizeof(BlockHeader))
        return damaged_block(block, "its checksum is wrong");
      const auto header = load_le<BlockHeader>(record->value.data());
      rows += header.rows;
      tokens += header.tokens;
      pieces += header.pieces;
    }
    const ChunkCounts& counts = description_.counts;
    if (rows != counts.rows || tokens != counts.tokens || pieces != counts.pieces ||
        counts.tokens != counts.tokens_in)
      return damaged(path_, "rows and tokens do not add up");
    hasher.update(file_.subspan(description_offset_));
    return hasher.finish();
  }

 private:
  Status read_description() {
    if (segment_->state() != SegmentState::sealed) {
      const auto& problems = segment_->problems();
      return damaged(path_, problems.empty() ? "it has no sound end" : problems.front().what);
    }
    for (uint32_t ordinal = 0; ordinal < segment_->entries().size(); ++ordinal) {
      const IndexEntry& entry = segment_->entry(ordinal);
      if (entry.kind == kErasureKind || segment_->kind_name(entry.kind) != kChunkKind) continue;
      const std::optional<RecordView> record = segment_->checked_record(ordinal);
      if (!record) return damaged(path_, "its description has a wrong checksum");
      auto description = decode_description(record->value);
      if (!description.ok()) return description.error();
      description_ = std::move(description).value();
      auto key = Key::from_encoding(bytes_of(record->encoding));
      if (!key.ok()) return damaged(path_, "its key cannot be read");
      auto parameters = parameters_of(*key);
      if (!parameters.ok()) return damaged(path_, parameters.error().message);
      parameters_ = std::move(parameters).value();
      if (chunk_key(description_.number, parameters_, description_.ranges) != *key ||
          key->digest() != entry.digest)
        return damaged(path_, "its key and its description disagree");
      key_ = key->digest();
      description_offset_ = entry.offset;
      return {};
    }
    return Error{ErrorCode::incompatible, path_.string() + " is no chunk: it has no description"};
  }

  Status read_ids() {
    if (description_.ids_offset == 0) return {};
    const std::optional<RecordView> record =
        read_record(segment_->records(), segment_->nonce(), description_.ids_offset);
    if (!record) return damaged(path_, "its table of token ids has a wrong checksum");
    auto ranks = TokenRanks::decode(record->value);
    if (!ranks.ok()) return damaged(path_, ranks.error().message);
    ids_.assign(ranks->ids().begin(), ranks->ids().end());
    for (const uint32_t id : ids_)
      if (id >= parameters_.vocab_size) return damaged(path_, "a token that the vocabulary does not have");
    const unsigned width = bytes_for(ids_.size());
    if (width <= 2) ids_.resize(size_t{1} << (8 * width), kNoToken);
    return {};
  }

  std::optional<RecordView> block_record(uint32_t block) const {
    return read_record(segment_->records(), segment_->nonce(), description_.block_offsets[block]);
  }
  BlockFrame frame_of(uint32_t block) const {
    const uint64_t first = uint64_t{block} * description_.rows_per_block;
    return {.rows = static_cast<uint32_t>(
                std::min<uint64_t>(description_.rows_per_block, description_.counts.rows - first)),
            .sequence_length = parameters_.sequence_length,
            .vocab_size = parameters_.vocab_size,
            .has_ranks = description_.ids_offset != 0,
            .ids = ids_};
  }
  Error damaged_block(uint32_t block, const std::string& what) const {
    return damaged(path_, "block " + std::to_string(block) + " at byte " +
                              std::to_string(description_.block_offsets[block]) + ": " + what);
  }

  // Constant after open().
  Path path_;
  Bytes file_;
  std::shared_ptr<Segment> segment_;
  Description description_;
  uint64_t description_offset_ = 0;
  ChunkParameters parameters_;
  Digest key_;
  std::vector<uint32_t> ids_;  // By rank, padded as BlockFrame wants it.
};

}  // namespace

Result<std::shared_ptr<const ChunkFile>> ChunkFile::open(const std::filesystem::path& file) {
  return SegmentChunk::open(file);
}

}  // namespace lmemo
