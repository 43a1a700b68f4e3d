// Many tokenised rows as one entry of the store. One entry for each row would cost more than tokenising a short one; in
// packs of about a thousand, what is stored and found beside the ids is 40 bytes a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo::dataset {

// Which ids are learned, as lengths in turn: not learned, learned, not learned, … Their sum is the number of ids.
using LearnedRuns = std::vector<uint32_t>;

class RowPackWriter {
 public:
  static constexpr size_t kMaxRows = 1024;
  static constexpr size_t kMaxIds = size_t{1} << 19;

  void add(const Digest& row, std::span<const uint32_t> ids, std::span<const uint32_t> runs);
  bool is_full() const { return digests_.size() >= kMaxRows || ids_.size() >= kMaxIds; }
  bool is_empty() const { return digests_.empty(); }
  Digest content() const;  // Of the digests of its rows.
  // The entry's bytes; the writer is empty afterwards.
  std::string finish();

 private:
  std::vector<Digest> digests_;
  std::vector<uint32_t> id_counts_;
  std::vector<uint32_t> run_counts_;
  std::vector<uint32_t> runs_;
  std::vector<uint32_t> ids_;
};

// A view of a pack; the bytes must outlive it.
class RowPack {
 public:
  // corruption, if lengths do not add up: nothing is believed that was not checked.
  static Result<RowPack> parse(Bytes bytes);

  size_t size() const { return row_count_; }
  Digest digest(size_t row) const;
  // Appends them.
  void read(size_t row, std::vector<uint32_t>& ids, std::vector<uint32_t>& runs) const;

 private:
  Bytes bytes_;
  size_t row_count_ = 0;
  size_t width_ = 0;
  size_t counts_at_ = 0, runs_at_ = 0, ids_at_ = 0;
  std::vector<uint32_t> id_starts_, run_starts_;  // One more than rows.
};

}  // namespace lmemo::dataset
