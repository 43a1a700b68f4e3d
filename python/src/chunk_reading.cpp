// lmemo._core.NativeChunkSet, RowOrder and RowReader: packed rows for training. lmemo/chunk_set.py and lmemo/torch.py stand
// in front of them. Arrays are handed out as memoryviews, because importing numpy costs more than opening a set.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "lmemo/chunks.h"
#include "lmemo/row_order.h"
#include "lmemo/row_reader.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// The set never changes, which Python has no word for.
struct NativeChunkSet {
  std::shared_ptr<const ChunkSet> set;
};

NativeChunkSet open_set(nb::handle directory, bool allow_gaps, const std::optional<std::string>& tokenizer) {
  ChunkSetOptions options;
  options.allow_gaps = allow_gaps;
  if (tokenizer) {
    options.tokenizer = Digest::from_hex(*tokenizer);
    if (!options.tokenizer) {
      raise_error({ErrorCode::invalid_argument, "tokenizer: expected its identity, 64 hexadecimal digits"});
    }
  }
  const std::filesystem::path path = path_of(directory);
  Result<std::shared_ptr<const ChunkSet>> set = [&] {
    nb::gil_scoped_release release;
    return ChunkSet::open(path, options);
  }();
  return {value_or_raise(std::move(set))};
}

nb::dict parameters_of(const NativeChunkSet& self) {
  const ChunkParameters& parameters = self.set->parameters();
  nb::dict out;
  out["sequence_length"] = parameters.sequence_length;
  out["strategy"] = parameters.strategy;
  out["compression"] = parameters.compression;
  out["level"] = parameters.level;
  out["text_field"] = parameters.text_field;
  out["bos"] = parameters.bos;
  out["eos"] = parameters.eos;
  out["min_tokens"] = parameters.min_tokens;
  out["deduplicates"] = parameters.deduplicates;
  out["tokenizer"] = parameters.tokenizer.hex();
  out["tokenizer_name"] = parameters.tokenizer_name;
  out["vocab_size"] = parameters.vocab_size;
  return out;
}

nb::list chunks_of(const NativeChunkSet& self) {
  nb::list out;
  for (const ChunkSummary& chunk : self.set->chunks()) {
    nb::dict one;
    one["number"] = chunk.number;
    one["file"] = chunk.file;
    one["rows"] = chunk.rows;
    one["tokens"] = chunk.tokens;
    one["documents"] = chunk.documents;
    one["bytes"] = chunk.bytes;
    one["sha256"] = chunk.sha256.hex();
    out.append(std::move(one));
  }
  return out;
}

std::vector<uint64_t> chunk_rows_of(const NativeChunkSet& self) {
  std::vector<uint64_t> rows;
  for (const ChunkSummary& chunk : self.set->chunks()) rows.push_back(chunk.rows);
  return rows;
}

// How many rows are compressed together: those of the longest first block.
uint64_t block_rows_of(const NativeChunkSet& self) {
  uint64_t most = 1;
  for (const ChunkSummary& chunk : self.set->chunks()) {
    if (chunk.blocks == 0) continue;
    most = std::max(most, self.set->first_row_of(chunk.first_block + 1) - chunk.first_row);
    if (chunk.blocks > 1) break;  // All but the last block of a chunk are equally long.
  }
  return most;
}

RowOrder make_order(const std::vector<uint64_t>& chunk_rows, const std::string& kind, uint64_t seed,
                    uint64_t epoch, uint64_t block_rows, uint64_t window_blocks, uint64_t lanes,
                    const std::vector<std::pair<uint64_t, uint64_t>>& growths,
                    const std::vector<uint64_t>& chunk_starts) {
  const RowOrderOptions options{value_or_raise(row_order_kind_of(kind)), seed, block_rows, window_blocks,
                                lanes};
  std::vector<RowGrowth> past;
  for (const auto& [chunks_before, consumed] : growths) past.push_back({chunks_before, consumed});
  return value_or_raise(RowOrder::make(chunk_rows, options, epoch, past, chunk_starts));
}

// What stands at places first, first + stride, … of an order.
std::vector<uint64_t> rows_at(const RowOrder& order, uint64_t first, uint64_t stride, uint64_t count) {
  if (count > 0 &&
      (first >= order.rows() || (count - 1) > (order.rows() - 1 - first) / std::max<uint64_t>(stride, 1))) {
    raise_error({ErrorCode::invalid_argument, "places beyond the end of the order"});
  }
  std::vector<uint64_t> rows(count);
  order.rows_at(first, stride, rows);
  return rows;
}

// The memory of a batch that lmemo itself makes.
template <typename Number>
nb::object memory_view(std::vector<Number> numbers, std::vector<size_t> shape) {
  auto* owned = new std::vector<Number>(std::move(numbers));
  nb::capsule owner(owned, [](void* vector) noexcept { delete static_cast<std::vector<Number>*>(vector); });
  return nb::ndarray<nb::memview, Number>(owned->data(), shape.size(), shape.data(), owner).cast();
}

nb::tuple boundaries_to_python(RowBoundaries boundaries) {
  const size_t pieces = boundaries.lengths.size();
  const size_t rows = boundaries.row_pieces.size();
  return nb::make_tuple(memory_view(std::move(boundaries.lengths), {pieces}),
                        memory_view(std::move(boundaries.row_pieces), {rows}));
}

using Column = nb::ndarray<nb::device::cpu, nb::c_contig>;

template <typename Number>
Number* data_of(const std::optional<Column>& column, size_t numbers) {
  if (!column) return nullptr;
  if (column->dtype() != nb::dtype<Number>())
    raise_error({ErrorCode::invalid_argument, "columns must be of one type"});
  if (column->size() != numbers) {
    raise_error({ErrorCode::invalid_argument, "a column has " + std::to_string(column->size()) +
                                                  " numbers, the rows need " + std::to_string(numbers)});
  }
  return static_cast<Number*>(column->data());
}

// A reader with its set: what Python sees.
class PythonRowReader {
 public:
  PythonRowReader(const NativeChunkSet& set, uint64_t max_bytes, unsigned threads, bool is_compact)
      : set_(set.set),
        reader_(std::make_unique<RowReader>(set.set, RowReaderOptions{max_bytes, threads, is_compact})) {}

  ~PythonRowReader() {
    nb::gil_scoped_release release;  // Threads are joined.
    reader_.reset();
  }

  // After fork() its threads are in another process, and its locks perhaps locked for ever: it is left as it is.
  void abandon() { static_cast<void>(reader_.release()); }

  void pause() {
    nb::gil_scoped_release release;
    reader_->pause();
  }
  void go_on() { reader_->go_on(); }

  nb::tuple read_into(const std::vector<uint64_t>& rows, const std::optional<Column>& input_ids,
                      const std::optional<Column>& labels, const std::optional<Column>& position_ids,
                      int64_t pad_id, bool masks_boundaries) {
    const std::optional<Column>& any = input_ids ? input_ids : labels ? labels : position_ids;
    const size_t numbers = rows.size() * set_->sequence_length();
    if (any && any->dtype() == nb::dtype<int32_t>()) {
      return read<int32_t>(
          rows, {data_of<int32_t>(input_ids, numbers), data_of<int32_t>(labels, numbers),
                 data_of<int32_t>(position_ids, numbers), static_cast<int32_t>(pad_id), masks_boundaries});
    }
    return read<int64_t>(rows, {data_of<int64_t>(input_ids, numbers), data_of<int64_t>(labels, numbers),
                                data_of<int64_t>(position_ids, numbers), pad_id, masks_boundaries});
  }

  nb::tuple read_places_into(const RowOrder& order, uint64_t first, uint64_t stride, uint64_t count,
                             const std::optional<Column>& input_ids, const std::optional<Column>& labels,
                             const std::optional<Column>& position_ids, int64_t pad_id,
                             bool masks_boundaries) {
    return read_into(rows_at(order, first, stride, count), input_ids, labels, position_ids, pad_id,
                     masks_boundaries);
  }

  void expect_places(const RowOrder& order, uint64_t first, uint64_t stride, uint64_t count) {
    expect(rows_at(order, first, stride, count));
  }

  // (input_ids, lengths, row_pieces), made here.
  nb::tuple read_new(const std::vector<uint64_t>& rows, int64_t pad_id) {
    const size_t length = set_->sequence_length();
    std::vector<int64_t> ids(rows.size() * length);
    const nb::tuple boundaries = read<int64_t>(rows, {.input_ids = ids.data(), .pad_id = pad_id});
    return nb::make_tuple(memory_view(std::move(ids), {rows.size(), length}), boundaries[0], boundaries[1]);
  }

  void expect(const std::vector<uint64_t>& rows) {
    nb::gil_scoped_release release;
    reader_->expect(rows);
  }

  nb::dict counters() const {
    const RowReader::Counters counters = reader_->counters();
    nb::dict out;
    out["blocks_decoded"] = counters.blocks_decoded;
    out["blocks_decoded_ahead"] = counters.blocks_decoded_ahead;
    out["blocks_found"] = counters.blocks_found;
    return out;
  }

 private:
  template <typename Number>
  nb::tuple read(const std::vector<uint64_t>& rows, const RowColumns<Number>& columns) {
    RowBoundaries boundaries;
    const Status status = [&] {
      nb::gil_scoped_release release;
      return reader_->read<Number>(rows, columns, boundaries);
    }();
    raise_if_failed(status);
    return boundaries_to_python(std::move(boundaries));
  }

  const std::shared_ptr<const ChunkSet> set_;
  std::unique_ptr<RowReader> reader_;
};

void init_sets(nb::module_& m) {
  nb::class_<NativeChunkSet>(m, "NativeChunkSet", "The compiled part of lmemo.ChunkSet.")
      .def_static("open", &open_set, "directory"_a, "allow_gaps"_a = false, "tokenizer"_a.none() = nb::none(),
                  nb::sig("def open(directory: str | os.PathLike[str], allow_gaps: bool = False, "
                          "tokenizer: str | None = None) -> NativeChunkSet"))
      .def_prop_ro("rows", [](const NativeChunkSet& self) { return self.set->row_count(); })
      .def_prop_ro("tokens", [](const NativeChunkSet& self) { return self.set->token_count(); })
      .def_prop_ro("blocks", [](const NativeChunkSet& self) { return self.set->block_count(); })
      .def_prop_ro("sequence_length", [](const NativeChunkSet& self) { return self.set->sequence_length(); })
      .def_prop_ro("planned_chunks", [](const NativeChunkSet& self) { return self.set->planned_chunks(); })
      .def_prop_ro("identity", [](const NativeChunkSet& self) { return self.set->identity().hex(); })
      .def_prop_ro("block_rows", &block_rows_of)
      .def_prop_ro("parameters", &parameters_of, nb::sig("def parameters(self) -> dict[str, Any]"))
      .def_prop_ro("chunks", &chunks_of, nb::sig("def chunks(self) -> list[dict[str, Any]]"))
      .def_prop_ro("chunk_rows", &chunk_rows_of)
      .def_prop_ro("gaps",
                   [](const NativeChunkSet& self) {
                     return std::vector<uint64_t>(self.set->gaps().begin(), self.set->gaps().end());
                   })
      .def(
          "identity_of_first",
          [](const NativeChunkSet& self, uint64_t chunks) {
            return self.set->identity_of_first(chunks).hex();
          },
          "chunks"_a);
}

}  // namespace

void init_chunk_reading(nb::module_& m) {
  init_sets(m);

  nb::class_<RowOrder>(m, "RowOrder", "The order of rows in an epoch; lmemo.torch.ChunkDataset reads by it.")
      .def_static("make", &make_order, "chunk_rows"_a, "kind"_a, "seed"_a, "epoch"_a, "block_rows"_a,
                  "window_blocks"_a, "lanes"_a, "growths"_a, "chunk_starts"_a)
      .def("rows_at", &rows_at, "first"_a, "stride"_a, "count"_a)
      .def_prop_ro("rows", &RowOrder::rows);

  nb::class_<PythonRowReader>(m, "RowReader", nb::is_weak_referenceable(),
                              "Rows as the columns of a batch, decoded ahead by threads.")
      .def(nb::init<const NativeChunkSet&, uint64_t, unsigned, bool>(), "chunk_set"_a, "max_bytes"_a,
           "threads"_a, "is_compact"_a = true)
      .def("read_into", &PythonRowReader::read_into, "rows"_a, "input_ids"_a.none().noconvert(),
           "labels"_a.none().noconvert(), "position_ids"_a.none().noconvert(), "pad_id"_a,
           "masks_boundaries"_a,
           nb::sig("def read_into(self, rows: Sequence[int], input_ids: Any, labels: Any, position_ids: Any, "
                   "pad_id: int, masks_boundaries: bool) -> tuple[memoryview, memoryview]"),
           "Fills the columns. Gives the lengths of all pieces, and where those of each row start.")
      .def("read_places_into", &PythonRowReader::read_places_into, "order"_a, "first"_a, "stride"_a,
           "count"_a, "input_ids"_a.none().noconvert(), "labels"_a.none().noconvert(),
           "position_ids"_a.none().noconvert(), "pad_id"_a, "masks_boundaries"_a,
           nb::sig("def read_places_into(self, order: RowOrder, first: int, stride: int, count: int, "
                   "input_ids: Any, "
                   "labels: Any, position_ids: Any, pad_id: int, masks_boundaries: bool) -> "
                   "tuple[memoryview, memoryview]"),
           "The same for places of an order.")
      .def("expect_places", &PythonRowReader::expect_places, "order"_a, "first"_a, "stride"_a, "count"_a)
      .def("read_new", &PythonRowReader::read_new, "rows"_a, "pad_id"_a,
           nb::sig("def read_new(self, rows: Sequence[int], pad_id: int) -> "
                   "tuple[memoryview, memoryview, memoryview]"))
      .def("expect", &PythonRowReader::expect, "rows"_a)
      .def("counters", &PythonRowReader::counters, nb::sig("def counters(self) -> dict[str, int]"))
      .def("pause", &PythonRowReader::pause, "Before a fork.")
      .def("go_on", &PythonRowReader::go_on, "After it, in the parent.")
      .def("abandon", &PythonRowReader::abandon, "After it, in the child.");
}

}  // namespace lmemo::python
