// One split of a set on disk: rows in, Arrow out, in the layout of datasets.load_from_disk. Rows are written in the order
// in which they come, in batches whose borders depend on the rows alone, so the bytes do too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/arrow_stream.h"
#include "lmemo/dataset.h"

namespace lmemo::dataset {

struct SplitTotals {
  uint64_t rows = 0;
  uint64_t tokens = 0;  // Without padding.
  uint64_t learned_tokens = 0;
  uint64_t padding_tokens = 0;
  uint64_t longest = 0;
  uint64_t byte_count = 0;  // Of the Arrow file …
  uint64_t checksum = 0;    // … and of its bytes: see file_checksum().
};

struct RowLayout {
  RowPadding padding = RowPadding::none;
  uint64_t max_length = 0;
  uint32_t pad_id = 0;
};

class CheckedFile;

class SplitWriter {
 public:
  // Makes the directory.
  static Result<std::unique_ptr<SplitWriter>> create(const std::filesystem::path& directory,
                                                     const RowLayout& layout);
  ~SplitWriter();

  // Requires: not longer than max_length, and runs that add up to the ids.
  Status add(std::span<const uint32_t> ids, std::span<const uint32_t> runs);
  // Nothing is lost by a power cut after this. The fingerprint is what datasets calls so.
  Result<SplitTotals> finish(const std::string& name, const std::string& fingerprint);

 private:
  SplitWriter(std::filesystem::path directory, const RowLayout& layout);
  Status start(uint64_t padded_length);
  Status write_row(std::span<const uint32_t> ids, std::span<const uint32_t> runs);
  Status write_batch();
  Status spool_row(std::span<const uint32_t> ids, std::span<const uint32_t> runs);
  Status write_spooled_rows();

  const std::filesystem::path directory_;
  const RowLayout layout_;
  SplitTotals totals_;
  uint64_t padded_length_ = 0;  // 0: rows are not padded.
  std::unique_ptr<CheckedFile> file_;
  std::unique_ptr<CheckedFile> spool_;  // Rows that wait for the longest to be known.
  std::optional<ArrowStreamWriter> arrow_;

  // The batch at hand.
  std::vector<int32_t> offsets_ = {0};
  std::vector<int32_t> ids_, labels_;
  std::vector<int8_t> mask_;
};

// The chained XXH3 of a file's blocks of 1 MiB: against bit rot, not an identity.
Result<uint64_t> file_checksum(const std::filesystem::path& path, const Watch& watch);

inline constexpr const char* kDataFile = "data-00000-of-00001.arrow";
// What datasets wants beside it.
inline constexpr const char* kStateFile = "state.json";
std::string state_json(const std::string& split, const std::string& fingerprint);
inline constexpr const char* kInfoFile = "dataset_info.json";
inline constexpr const char* kInfoText = "{}";

// Writes a small file and makes it last.
Status write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace lmemo::dataset
