// record := u8 version, u8 tensor_count, 6 zeros, head*, (elements, zeros to a multiple of 8)*
// head   := u8 type, u8 compression (0 none, 1 byte planes), u8 dimensions, 5 zeros, u64 stored_bytes, u64 × dimensions
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/large_copy.h"
#include "base/little_endian.h"
#include "codec/float_convert.h"
#include "codec/half_planes.h"
#include "lmemo/activations.h"

namespace lmemo {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint64_t kMaxElements = uint64_t{1} << 40;
constexpr uint64_t kHeadOfRows = 8 + 16 + 2 * 8;  // One tensor of two dimensions.

struct TypeRow {
  TensorType type;
  std::string_view name;
  size_t bytes;
};
constexpr TypeRow kTypes[] = {
    {TensorType::float16, "float16", 2}, {TensorType::bfloat16, "bfloat16", 2},
    {TensorType::float32, "float32", 4}, {TensorType::float64, "float64", 8},
    {TensorType::int64, "int64", 8},     {TensorType::int32, "int32", 4},
    {TensorType::int16, "int16", 2},     {TensorType::int8, "int8", 1},
    {TensorType::uint8, "uint8", 1},     {TensorType::boolean, "bool", 1},
};

bool is_half(TensorType type) { return type == TensorType::float16 || type == TensorType::bfloat16; }
uint64_t padded(uint64_t byte_count) { return (byte_count + 7) & ~uint64_t{7}; }
bool can_convert(TensorType from, TensorType to) {
  const auto is_convertible = [](TensorType type) { return is_half(type) || type == TensorType::float32; };
  return from == to || (is_convertible(from) && is_convertible(to));
}
Error cannot_convert(TensorType from, TensorType to) {
  return {ErrorCode::invalid_argument,
          "cannot give " + std::string(name_of(from)) + " as " + std::string(name_of(to))};
}
Error damaged(const std::string& what) { return {ErrorCode::corruption, "tensor record: " + what}; }

// Some floats as others, through float32. Requires can_convert().
void convert(TensorType from, Bytes in, TensorType to, std::byte* out) {
  const uint64_t count = in.size() / bytes_per_element(from);
  if (from == to) {
    if (!in.empty()) std::memcpy(out, in.data(), in.size());
    return;
  }
  constexpr size_t kStep = 4096;
  std::array<float, kStep> wide;
  for (uint64_t done = 0; done < count; done += kStep) {
    const size_t step = std::min<uint64_t>(kStep, count - done);
    const std::byte* source = in.data() + done * bytes_per_element(from);
    std::byte* target = out + done * bytes_per_element(to);
    const float* floats = wide.data();
    const std::span halves(reinterpret_cast<const uint16_t*>(source), step);
    float* const place = to == TensorType::float32 ? reinterpret_cast<float*>(target) : wide.data();
    if (from == TensorType::float32)
      floats = reinterpret_cast<const float*>(source);
    else if (from == TensorType::float16)
      halves_to_floats(halves, place);
    else
      bfloats_to_floats(halves, place);
    if (to == TensorType::float16)
      floats_to_halves({floats, step}, reinterpret_cast<uint16_t*>(target));
    else if (to == TensorType::bfloat16)
      floats_to_bfloats({floats, step}, reinterpret_cast<uint16_t*>(target));
    // From float16, and only from it, torch makes every NaN a positive one.
    if (from == TensorType::float16 && to == TensorType::bfloat16) {
      auto* const converted = reinterpret_cast<uint16_t*>(target);
      for (size_t k = 0; k < step; ++k)
        if ((halves[k] & 0x7fff) > 0x7c00) converted[k] = 0x7fc0;
    }
  }
}

}  // namespace

size_t bytes_per_element(TensorType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.bytes;
  return 0;
}

std::string_view name_of(TensorType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.name;
  return "none";
}

std::optional<TensorType> tensor_type_named(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

uint64_t TensorView::element_count() const {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

std::byte* TensorRecord::add(TensorType type, std::vector<uint64_t> shape) {
  uint64_t count = bytes_per_element(type);
  for (const uint64_t dimension : shape) count *= dimension;
  parts_.push_back({type, std::move(shape), std::string(count, '\0')});
  return reinterpret_cast<std::byte*>(parts_.back().data.data());
}

Result<std::string> TensorRecord::finish(bool compress) {
  if (parts_.size() > kMaxTensorsPerRecord)
    return Error{ErrorCode::invalid_argument, "too many tensors for one record"};
  std::string record{static_cast<char>(kVersion), static_cast<char>(parts_.size())};
  record.resize(8);
  std::vector<bool> is_compressed;
  for (Part& part : parts_) {
    if (part.shape.size() > kMaxTensorDimensions)
      return Error{ErrorCode::invalid_argument,
                   "a tensor of " + std::to_string(part.shape.size()) + " dimensions; at most 8 are stored"};
    std::string planes;
    bool is_smaller = false;
    if (compress && is_half(part.type)) {
      LMEMO_TRY(compress_halves({reinterpret_cast<const uint16_t*>(part.data.data()), part.data.size() / 2},
                                planes));
      is_smaller = planes.size() < part.data.size();
      if (is_smaller) part.data = std::move(planes);
    }
    const size_t head = record.size();
    record.resize(head + 8);
    record[head] = static_cast<char>(part.type);
    record[head + 1] = is_smaller ? 1 : 0;
    record[head + 2] = static_cast<char>(part.shape.size());
    append_le(record, static_cast<uint64_t>(part.data.size()));
    for (const uint64_t dimension : part.shape) append_le(record, dimension);
  }
  for (const Part& part : parts_) {
    record += part.data;
    record.resize(padded(record.size()));
  }
  return record;
}

uint64_t record_bytes_of_rows(TensorType to, uint64_t rows, uint64_t columns) {
  return kHeadOfRows + padded(rows * columns * bytes_per_element(to));
}

Status write_record_of_rows(TensorType from, const std::byte* source, uint64_t row_stride, TensorType to,
                            uint64_t rows, uint64_t columns, std::byte* out) {
  if (!can_convert(from, to)) return cannot_convert(from, to);
  const uint64_t in_bytes = columns * bytes_per_element(from), out_bytes = columns * bytes_per_element(to);
  std::array<uint64_t, kHeadOfRows / 8> head{};
  head[0] = kVersion | 1u << 8;
  head[1] = static_cast<uint64_t>(to) | 2u << 16;
  head[2] = rows * out_bytes;
  head[3] = rows;
  head[4] = columns;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(out, head.data(), kHeadOfRows);
  std::byte* const elements = out + kHeadOfRows;
  if (row_stride == in_bytes) {
    convert(from, Bytes(source, rows * in_bytes), to, elements);
  } else {
    for (uint64_t row = 0; row < rows; ++row)
      convert(from, Bytes(source + row * row_stride, in_bytes), to, elements + row * out_bytes);
  }
  std::memset(elements + rows * out_bytes, 0, padded(rows * out_bytes) - rows * out_bytes);
  return {};
}

Result<std::vector<TensorView>> read_tensors(Bytes record) {
  if (record.size() < 8) return damaged(std::to_string(record.size()) + " bytes are no head");
  if (static_cast<uint8_t>(record[0]) != kVersion)
    return Error{ErrorCode::incompatible,
                 "tensor record of version " + std::to_string(static_cast<int>(record[0])) + ", expected 1"};
  const auto count = static_cast<uint8_t>(record[1]);
  if (count > kMaxTensorsPerRecord) return damaged(std::to_string(count) + " tensors");
  std::vector<TensorView> tensors(count);
  std::vector<uint64_t> sizes(count);
  Bytes rest = record.subspan(8);
  for (size_t i = 0; i < count; ++i) {
    if (rest.size() < 16) return damaged("it ends in a head");
    TensorView& tensor = tensors[i];
    tensor.type = static_cast<TensorType>(rest[0]);
    const auto compression = static_cast<uint8_t>(rest[1]), dimensions = static_cast<uint8_t>(rest[2]);
    const size_t element = bytes_per_element(tensor.type);
    if (element == 0 || compression > 1 || dimensions > kMaxTensorDimensions ||
        (compression == 1 && !is_half(tensor.type)))
      return damaged("type, compression or dimensions of tensor " + std::to_string(i));
    tensor.is_compressed = compression == 1;
    sizes[i] = load_le<uint64_t>(rest.data() + 8);
    rest = rest.subspan(16);
    if (rest.size() < 8u * dimensions) return damaged("it ends in a shape");
    uint64_t elements = 1;
    for (size_t d = 0; d < dimensions; ++d) {
      const auto dimension = load_le<uint64_t>(rest.data() + 8 * d);
      if (dimension > kMaxElements || (dimension > 0 && elements > kMaxElements / dimension))
        return damaged("a shape too large to be true");
      elements *= dimension;
      tensor.shape.push_back(dimension);
    }
    rest = rest.subspan(8u * dimensions);
    // Planes of zeros take little, but never nothing: what is claimed stays in proportion to what is there.
    const bool fits = tensor.is_compressed ? elements / 50'000 <= sizes[i] : sizes[i] == elements * element;
    if (!fits)
      return damaged("elements of tensor " + std::to_string(i) + ": " + std::to_string(sizes[i]) +
                     " bytes for " + std::to_string(elements));
  }
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] > rest.size() || padded(sizes[i]) > rest.size())
      return damaged("it ends in the elements of tensor " + std::to_string(i));
    tensors[i].stored = rest.first(sizes[i]);
    rest = rest.subspan(padded(sizes[i]));
  }
  if (!rest.empty()) return damaged(std::to_string(rest.size()) + " bytes too many");
  return tensors;
}

std::optional<RowsView> read_plain_rows(Bytes record) {
  std::array<uint64_t, kHeadOfRows / 8> head;
  if (record.size() < kHeadOfRows) return std::nullopt;
  std::memcpy(head.data(), record.data(), kHeadOfRows);
  const RowsView rows{static_cast<TensorType>(head[1] & 0xff), head[3], head[4], {}};
  if (head[0] != (kVersion | 1u << 8) || head[1] != (static_cast<uint64_t>(rows.type) | 2u << 16))
    return std::nullopt;
  const uint64_t element = bytes_per_element(rows.type);
  if (element == 0 || rows.rows > kMaxElements || rows.columns > kMaxElements) return std::nullopt;
  if (rows.rows > 0 && rows.columns > kMaxElements / rows.rows) return std::nullopt;
  const uint64_t byte_count = rows.rows * rows.columns * element;
  if (head[2] != byte_count || record.size() != kHeadOfRows + padded(byte_count)) return std::nullopt;
  return RowsView{rows.type, rows.rows, rows.columns, record.subspan(kHeadOfRows, byte_count)};
}

Status copy_elements(const TensorView& tensor, TensorType to, std::byte* out, uint64_t row_bytes,
                     uint64_t row_stride) {
  if (!can_convert(tensor.type, to)) return cannot_convert(tensor.type, to);
  Bytes elements = tensor.stored;
  std::vector<uint16_t> planes;
  if (tensor.is_compressed) {
    planes.resize(tensor.element_count());
    LMEMO_TRY(decompress_halves(tensor.stored, planes));
    elements = std::as_bytes(std::span(planes));
  }
  const bool is_one_piece = row_bytes == 0 || row_bytes == row_stride;
  const uint64_t in_bytes =
      is_one_piece ? elements.size() : row_bytes / bytes_per_element(to) * bytes_per_element(tensor.type);
  if (in_bytes == 0) return {};
  const uint64_t reach = is_one_piece ? in_bytes : elements.size() / in_bytes * row_stride;
  const bool is_streamed = tensor.type == to && reach >= kLargeBytes;
  for (; elements.size() >= in_bytes; elements = elements.subspan(in_bytes), out += row_stride) {
    if (is_streamed)
      stream_copy(out, elements.data(), in_bytes);
    else
      convert(tensor.type, elements.first(in_bytes), to, out);
  }
  if (is_streamed) end_stream();
  return {};
}

}  // namespace lmemo
