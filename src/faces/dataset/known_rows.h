// The rows that earlier builds left in the store under the same recipe. Read by all workers at once, after load().
#pragma once

#include <cstdint>
#include <vector>

#include "faces/dataset/row_pack.h"
#include "lmemo/key.h"
#include "lmemo/store.h"

namespace lmemo::dataset {

inline constexpr const char* kRowsKind = "dataset_rows";

class KnownRows {
 public:
  // Damaged packs are left out: their rows are computed again.
  void load(Store& store, const std::vector<Field>& recipe_fields);

  size_t size() const { return row_count_; }
  // Appends the row and returns true, or returns false.
  bool find(const Digest& row, std::vector<uint32_t>& ids, std::vector<uint32_t>& runs) const;

 private:
  struct Slot {
    uint32_t pack = 0;  // From 1; 0 is empty.
    uint32_t row = 0;
  };
  void build_table();

  std::vector<Hit> hits_;  // Keep the bytes of packs_ alive.
  std::vector<RowPack> packs_;
  std::vector<Slot> slots_;  // A power of two; open addressing by the digest's first bytes.
  size_t row_count_ = 0;
};

// Collects new rows and puts them into the store, pack by pack. One thread.
class RowPutter {
 public:
  // `store` may be null.
  RowPutter(Store* store, std::vector<Field> recipe_fields)
      : store_(store), fields_(std::move(recipe_fields)) {}
  void add(const Digest& row, std::span<const uint32_t> ids, std::span<const uint32_t> runs);
  void flush();

 private:
  void put();

  Store* const store_;
  const std::vector<Field> fields_;
  RowPackWriter pack_;
};

}  // namespace lmemo::dataset
