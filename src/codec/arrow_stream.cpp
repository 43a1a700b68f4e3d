#include "codec/arrow_stream.h"

#include <array>
#include <limits>

#include "codec/flat_message.h"

namespace lmemo {
namespace {

// Names and numbers from Arrow's Message.fbs and Schema.fbs.
constexpr int16_t kMetadataV5 = 4;
constexpr uint8_t kSchemaHeader = 1;
constexpr uint8_t kRecordBatchHeader = 3;
constexpr uint8_t kIntType = 2;
constexpr uint8_t kFloatType = 3;
constexpr uint8_t kListType = 12;
constexpr uint32_t kContinuation = 0xffffffff;
constexpr size_t kAlignment = 8;

size_t padded(size_t byte_count) { return (byte_count + kAlignment - 1) / kAlignment * kAlignment; }

bool is_float(ArrowType type) { return type == ArrowType::float32 || type == ArrowType::float64; }
bool is_signed(ArrowType type) {
  return type == ArrowType::int8 || type == ArrowType::int16 || type == ArrowType::int32 ||
         type == ArrowType::int64;
}

FlatMessage::Place number_type(FlatMessage& flat, ArrowType type) {
  flat.begin_table();
  if (is_float(type)) {
    flat.field(0, static_cast<int16_t>(type == ArrowType::float32 ? 1 : 2));  // Precision: SINGLE, DOUBLE.
  } else {
    flat.field(0, static_cast<int32_t>(8 * byte_width(type)));
    flat.field(1, static_cast<uint8_t>(is_signed(type)));
  }
  return flat.end_table();
}

FlatMessage::Place field_of(FlatMessage& flat, std::string_view name, uint8_t type_tag,
                            FlatMessage::Place type, const std::vector<FlatMessage::Place>& children) {
  const auto name_place = flat.text(name);
  const auto children_place = flat.vector_of(children);
  flat.begin_table();
  flat.field_at(0, name_place);
  flat.field(1, uint8_t{1});  // Nullable, as pyarrow makes them.
  flat.field(2, type_tag);
  flat.field_at(3, type);
  flat.field_at(5, children_place);
  return flat.end_table();
}

FlatMessage::Place column_of(FlatMessage& flat, const ArrowColumn& column) {
  const uint8_t tag = is_float(column.type) ? kFloatType : kIntType;
  const auto type = number_type(flat, column.type);
  if (!column.is_list) return field_of(flat, column.name, tag, type, {});
  const auto item = field_of(flat, "item", tag, type, {});
  flat.begin_table();
  const auto list = flat.end_table();
  return field_of(flat, column.name, kListType, list, {item});
}

std::string message(FlatMessage& flat, uint8_t header_tag, FlatMessage::Place header, int64_t body_bytes) {
  flat.begin_table();
  flat.field(3, body_bytes);
  flat.field_at(2, header);
  flat.field(0, kMetadataV5);
  flat.field(1, header_tag);
  return flat.finish(flat.end_table());
}

struct FieldNode {
  int64_t length, null_count;
};
struct BufferPlace {
  int64_t offset, length;
};

template <typename Struct>
std::string_view bytes_of_all(const std::vector<Struct>& structs) {
  return {reinterpret_cast<const char*>(structs.data()), structs.size() * sizeof(Struct)};
}

Error mismatch(const ArrowColumn& column, const std::string& what) {
  return {ErrorCode::invalid_argument, "column " + column.name + ": " + what};
}

Status check(const ArrowColumn& column, uint64_t row_count, const ArrowColumnData& data) {
  const uint64_t value_count = data.values.size() / byte_width(column.type);
  if (data.values.size() % byte_width(column.type) != 0)
    return mismatch(column, "its bytes are no whole values");
  if (!column.is_list) {
    if (value_count != row_count || !data.offsets.empty())
      return mismatch(column, "expected one value for each row");
    return {};
  }
  if (data.offsets.size() != row_count + 1 || data.offsets.front() != 0 ||
      static_cast<uint64_t>(data.offsets.back()) != value_count)
    return mismatch(column, "its offsets do not fit its rows and values");
  for (size_t row = 0; row < row_count; ++row)
    if (data.offsets[row] > data.offsets[row + 1]) return mismatch(column, "its offsets fall");
  return {};
}

}  // namespace

size_t byte_width(ArrowType type) {
  switch (type) {
    case ArrowType::int8:
    case ArrowType::uint8: return 1;
    case ArrowType::int16:
    case ArrowType::uint16: return 2;
    case ArrowType::int32:
    case ArrowType::uint32:
    case ArrowType::float32: return 4;
    default: return 8;
  }
}

Status ArrowStreamWriter::write(Bytes bytes) {
  bytes_written_ += bytes.size();
  return sink_(bytes);
}

Status ArrowStreamWriter::write_padded(Bytes bytes) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  LMEMO_TRY(write(bytes));
  const size_t padding = padded(bytes.size()) - bytes.size();
  return padding == 0 ? Status() : write(Bytes(kZeros).first(padding));
}

Status ArrowStreamWriter::write_metadata(const std::string& flat) {
  std::string front(8, '\0');
  const uint32_t length = static_cast<uint32_t>(flat.size());
  std::memcpy(front.data(), &kContinuation, 4);
  std::memcpy(front.data() + 4, &length, 4);
  return write(bytes_of(front + flat));
}

Status ArrowStreamWriter::begin() {
  FlatMessage flat;
  std::vector<FlatMessage::Place> fields;
  for (const ArrowColumn& column : columns_) fields.push_back(column_of(flat, column));
  const auto fields_place = flat.vector_of(fields);
  flat.begin_table();
  flat.field_at(1, fields_place);
  const auto schema = flat.end_table();
  return write_metadata(message(flat, kSchemaHeader, schema, 0));
}

Status ArrowStreamWriter::batch(uint64_t row_count, std::span<const ArrowColumnData> columns) {
  if (columns.size() != columns_.size() || row_count > std::numeric_limits<int32_t>::max())
    return Error{ErrorCode::invalid_argument, "a batch needs data for every column and less than 2^31 rows"};
  std::vector<FieldNode> nodes;
  std::vector<BufferPlace> places;
  std::vector<Bytes> buffers;
  int64_t body_bytes = 0;
  const auto add = [&](Bytes bytes) {
    places.push_back({body_bytes, static_cast<int64_t>(bytes.size())});
    buffers.push_back(bytes);
    body_bytes += static_cast<int64_t>(padded(bytes.size()));
  };
  for (size_t i = 0; i < columns.size(); ++i) {
    LMEMO_TRY(check(columns_[i], row_count, columns[i]));
    const int64_t rows = static_cast<int64_t>(row_count);
    add({});  // No value is null.
    nodes.push_back({rows, 0});
    if (columns_[i].is_list) {
      add(std::as_bytes(columns[i].offsets));
      add({});
      nodes.push_back({columns[i].offsets.back(), 0});
    }
    add(columns[i].values);
  }

  FlatMessage flat;
  const auto buffers_place = flat.vector(bytes_of_all(places), places.size(), 8);
  const auto nodes_place = flat.vector(bytes_of_all(nodes), nodes.size(), 8);
  flat.begin_table();
  flat.field(0, static_cast<int64_t>(row_count));
  flat.field_at(1, nodes_place);
  flat.field_at(2, buffers_place);
  const auto batch = flat.end_table();
  LMEMO_TRY(write_metadata(message(flat, kRecordBatchHeader, batch, body_bytes)));
  for (const Bytes buffer : buffers) LMEMO_TRY(write_padded(buffer));
  return {};
}

Status ArrowStreamWriter::end() {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &kContinuation, 4);
  return write(bytes);
}

}  // namespace lmemo
