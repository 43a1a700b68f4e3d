#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/followed.h"
#include "base/sha256.h"
#include "faces/chunks/plan.h"
#include "faces/chunks/set_directory.h"

namespace lmemo {
namespace {

using namespace chunks;

// Files that stay open. One is a mapping; a process may have 65,530.
constexpr size_t kMaxOpenFiles = 4096;

std::string numbers_in_words(std::span<const uint64_t> numbers) {
  std::string words;
  for (size_t at = 0; at < std::min<size_t>(numbers.size(), 5); ++at)
    words += (at == 0 ? "" : ", ") + std::to_string(numbers[at]);
  return numbers.size() > 5 ? words + ", …" : words;
}

class DirectoryChunkSet final : public ChunkSet {
 public:
  static Result<std::shared_ptr<const ChunkSet>> open(const Path& directory, const ChunkSetOptions& options) {
    auto set = std::make_shared<DirectoryChunkSet>();
    set->paths_.directory = directory;
    LMEMO_ASSIGN(const std::optional<Plan> plan, load_plan(directory));
    if (!plan)
      return Error{ErrorCode::invalid_argument, directory.string() +
                                                    " holds no chunks; `lmemo chunks build INPUT… --output " +
                                                    directory.string() + "` makes some"};
    set->parameters_ = plan->parameters;
    set->planned_ = plan->entries.size();
    if (options.tokenizer && *options.tokenizer != plan->parameters.tokenizer)
      return Error{ErrorCode::incompatible, "the chunks in " + directory.string() +
                                                " were made with tokenizer " +
                                                plan->parameters.tokenizer_name + " (" +
                                                plan->parameters.tokenizer.hex().substr(0, 16) +
                                                "…), expected " + options.tokenizer->hex().substr(0, 16) +
                                                "…; build them again with the tokenizer of your model"};
    LMEMO_TRY(set->find_chunks(*plan));
    if (!options.allow_gaps && !set->gaps_.empty())
      return Error{ErrorCode::invalid_argument,
                   directory.string() + " is not complete: " + std::to_string(set->gaps_.size()) + " of " +
                       std::to_string(set->planned_) + " chunks are missing, damaged or stale (" +
                       numbers_in_words(set->gaps_) + "); run `lmemo chunks fill " + directory.string() +
                       "`, or allow gaps"};
    return std::shared_ptr<const ChunkSet>(std::move(set));
  }

  const ChunkParameters& parameters() const override { return parameters_; }
  uint64_t row_count() const override { return rows_; }
  uint64_t token_count() const override { return tokens_; }
  uint64_t block_count() const override { return blocks_; }
  uint64_t planned_chunks() const override { return planned_; }
  std::span<const ChunkSummary> chunks() const override { return summaries_; }
  std::span<const uint64_t> gaps() const override { return gaps_; }
  Digest identity() const override { return identity_of_first(summaries_.size()); }

  Digest identity_of_first(uint64_t chunk_count) const override {
    Sha256 hasher;
    for (const Field& field : parameter_fields(parameters_))
      hasher.update(bytes_of(field.name + "=" + field.value.describe() + "\n"));
    for (size_t at = 0; at < std::min<uint64_t>(chunk_count, summaries_.size()); ++at) {
      const uint64_t number = summaries_[at].number;
      hasher.update(std::as_bytes(std::span(&number, 1)));
      hasher.update(summaries_[at].sha256.bytes);
    }
    return hasher.finish();
  }

  uint64_t block_of(uint64_t row) const override {
    const size_t at = chunk_at([&](const ChunkSummary& chunk) { return chunk.first_row > row; });
    return summaries_[at].first_block + (row - summaries_[at].first_row) / rows_per_block_[at];
  }
  uint64_t first_row_of(uint64_t block) const override {
    if (block >= blocks_) return rows_;
    const size_t at = chunk_at([&](const ChunkSummary& chunk) { return chunk.first_block > block; });
    return summaries_[at].first_row + (block - summaries_[at].first_block) * rows_per_block_[at];
  }

  Status read_block(uint64_t block, ChunkRows& rows) const override {
    if (block >= blocks_)
      return Error{ErrorCode::invalid_argument,
                   "block " + std::to_string(block) + " of a set of " + std::to_string(blocks_) + " blocks"};
    const size_t at = chunk_at([&](const ChunkSummary& chunk) { return chunk.first_block > block; });
    LMEMO_ASSIGN(const auto file, file_of(at));
    LMEMO_TRY(file->read_block(static_cast<uint32_t>(block - summaries_[at].first_block), rows));
    rows.first_row += summaries_[at].first_row;
    return {};
  }

 private:
  Status find_chunks(const Plan& plan) {
    const Registry registry = load_registry(paths_);
    LMEMO_ASSIGN(const std::vector<FoundChunk> found, list_chunks(paths_));
    auto next = found.begin();
    for (const PlanEntry& planned : plan.entries) {
      while (next != found.end() && next->number < planned.number) ++next;
      if (next == found.end() || next->number != planned.number) {
        gaps_.push_back(planned.number);
        continue;
      }
      const auto known = registry.find(planned.number);
      RegistryEntry entry;
      if (known != registry.end() && known->second.describes(next->bytes, next->modified_ns)) {
        entry = known->second;
      } else if (auto described = describe_chunk(paths_, *next); described.ok()) {
        entry = *described;
      } else {
        gaps_.push_back(planned.number);
        continue;
      }
      // Of another plan, or of sources as they once were.
      if (entry.key != plan.key_of(planned).digest()) {
        gaps_.push_back(planned.number);
        continue;
      }
      add(entry);
    }
    files_.resize(summaries_.size());
    return {};
  }

  void add(const RegistryEntry& entry) {
    if (entry.counts.rows == 0) return;  // Nothing to read, and nothing missing.
    summaries_.push_back({.number = entry.number,
                          .file = "chunks/" + SetPaths::name_of_chunk(entry.number),
                          .first_row = rows_,
                          .first_block = blocks_,
                          .rows = entry.counts.rows,
                          .tokens = entry.counts.tokens,
                          .documents = entry.counts.documents,
                          .bytes = entry.bytes,
                          .blocks = entry.blocks,
                          .sha256 = entry.content_sha256});
    rows_per_block_.push_back(entry.rows_per_block);
    rows_ += entry.counts.rows;
    tokens_ += entry.counts.tokens;
    blocks_ += entry.blocks;
  }

  // The last chunk for which `is_behind` is false.
  template <typename IsBehind>
  size_t chunk_at(const IsBehind& is_behind) const {
    const auto first_behind = std::partition_point(
        summaries_.begin(), summaries_.end(), [&](const ChunkSummary& chunk) { return !is_behind(chunk); });
    return static_cast<size_t>(first_behind - summaries_.begin()) - 1;
  }

  Result<std::shared_ptr<const ChunkFile>> file_of(size_t at) const {
    {
      const std::lock_guard guard(mutex_);
      if (files_[at]) return files_[at];
    }
    LMEMO_ASSIGN(std::shared_ptr<const ChunkFile> file,
                 ChunkFile::open(paths_.directory / summaries_[at].file));
    if (file->content_sha256() != summaries_[at].sha256 || file->counts().rows != summaries_[at].rows)
      return Error{ErrorCode::corruption,
                   "chunk " + summaries_[at].file + " was replaced since the set was opened; open it again"};
    const std::lock_guard guard(mutex_);
    if (opened_.size() >= kMaxOpenFiles) {
      // Whoever still reads the oldest one holds it himself.
      files_[opened_[oldest_]].reset();
      opened_[oldest_] = at;
      oldest_ = (oldest_ + 1) % opened_.size();
    } else {
      opened_.push_back(at);
    }
    files_[at] = file;
    return file;
  }

  // Constant after open().
  SetPaths paths_;
  ChunkParameters parameters_;
  uint64_t planned_ = 0, rows_ = 0, tokens_ = 0, blocks_ = 0;
  std::vector<ChunkSummary> summaries_;
  std::vector<uint32_t> rows_per_block_;
  std::vector<uint64_t> gaps_;

  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::vector<std::shared_ptr<const ChunkFile>> files_;
  mutable std::vector<size_t> opened_;
  mutable size_t oldest_ = 0;
};

}  // namespace

Result<std::shared_ptr<const ChunkSet>> ChunkSet::open(const std::filesystem::path& directory,
                                                       const ChunkSetOptions& options) {
  return DirectoryChunkSet::open(followed(directory), options);
}

}  // namespace lmemo
