// Writes tables of numbers and of lists of numbers as an Arrow IPC stream, which pyarrow, datasets and polars read.
// The same rows give the same bytes.
//
//   const std::vector<ArrowColumn> columns = {{"input_ids", ArrowType::int32, true}, {"length", ArrowType::int64, false}};
//   ArrowStreamWriter writer(columns, [&](Bytes bytes) { return file.append(bytes); });
//   LMEMO_TRY(writer.begin());
//   LMEMO_TRY(writer.batch(2, {{{offsets, bytes_of_ids}, {{}, bytes_of_lengths}}}));   // Offsets: 0, 3, 5.
//   LMEMO_TRY(writer.end());
//
// No value is null. Not here: strings, nesting, dictionaries, compression, and reading.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

enum class ArrowType { int8, int16, int32, int64, uint8, uint16, uint32, float32, float64 };
size_t byte_width(ArrowType type);

struct ArrowColumn {
  std::string name;
  ArrowType type = ArrowType::int32;
  bool is_list = true;
};

struct ArrowColumnData {
  std::span<const int32_t> offsets;  // Of a list: one more than rows, from 0, never falling. Else empty.
  Bytes values;
};

class ArrowStreamWriter {
 public:
  using Sink = std::function<Status(Bytes)>;
  ArrowStreamWriter(std::vector<ArrowColumn> columns, Sink sink)
      : columns_(std::move(columns)), sink_(std::move(sink)) {}

  Status begin();
  // One for each column, in their order. invalid_argument if lengths do not fit together.
  Status batch(uint64_t row_count, std::span<const ArrowColumnData> columns);
  Status end();

  uint64_t bytes_written() const { return bytes_written_; }

 private:
  Status write(Bytes bytes);
  Status write_padded(Bytes bytes);
  Status write_metadata(const std::string& flat);

  const std::vector<ArrowColumn> columns_;
  const Sink sink_;
  uint64_t bytes_written_ = 0;
};

}  // namespace lmemo
