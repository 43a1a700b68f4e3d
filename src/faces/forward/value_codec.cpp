#include "faces/forward/value_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lmemo {
namespace {

constexpr uint8_t kRawForm = 0;
// 1 to 7: unsigned integers of so many bytes.
constexpr uint8_t kHalfForm = 16;
constexpr uint64_t kMaxDimension = uint64_t{1} << 48;
constexpr auto kLastTag = static_cast<uint8_t>(ValueTag::scalar);
constexpr auto kLastType = static_cast<uint8_t>(ElementType::bf16);

Error damaged(std::string what) { return {ErrorCode::corruption, "stored value: " + std::move(what)}; }

template <typename T>
T element(Bytes data, uint64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Calls body with a value of the element's own type; for integers only.
template <typename Body>
auto with_integer(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::i8: return body(int8_t{});
    case ElementType::i16: return body(int16_t{});
    case ElementType::i32: return body(int32_t{});
    case ElementType::i64: return body(int64_t{});
    case ElementType::u8: return body(uint8_t{});
    case ElementType::u16: return body(uint16_t{});
    case ElementType::u32: return body(uint32_t{});
    default: return body(uint64_t{});
  }
}

// The bytes that the largest element needs; 8 or more if one is negative.
size_t packed_width(ElementType type, Bytes data, uint64_t count) {
  uint64_t all_bits = 0;
  with_integer(type, [&](auto sample) {
    using T = decltype(sample);
    for (uint64_t i = 0; i < count; ++i)
      all_bits |= static_cast<uint64_t>(static_cast<int64_t>(element<T>(data, i)));
  });
  return std::max<size_t>(1, (static_cast<size_t>(std::bit_width(all_bits)) + 7) / 8);
}

bool fits_half(double value) { return !std::isfinite(value) || std::fabs(value) < 65520.0; }

// Fails if a finite element would become infinite: then the array stays exact.
template <typename Real>
bool append_halves(std::string& out, Bytes data, uint64_t count) {
  const size_t start = out.size();
  for (uint64_t i = 0; i < count; ++i) {
    const double value = element<Real>(data, i);
    if (!fits_half(value)) {
      out.resize(start);
      return false;
    }
    const uint16_t half = half_of(value);
    out.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  return true;
}

template <typename Real>
void unpack_halves(Bytes data, uint64_t count, std::byte* out) {
  for (uint64_t i = 0; i < count; ++i) {
    const Real value = static_cast<Real>(from_half(element<uint16_t>(data, i)));
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

size_t bytes_per_element(ElementType type) {
  static constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 8, 16, 2};
  return kBytes[static_cast<uint8_t>(type)];
}

bool is_integer(ElementType type) { return type >= ElementType::i8 && type <= ElementType::u64; }

uint64_t ArrayShape::element_count() const {
  uint64_t count = 1;
  for (const uint64_t dimension : dimensions) count *= dimension;
  return count;
}

uint16_t half_of(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (size >= 65520.0) return sign | 0x7C00;
  if (size < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24));
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 1024 to 2048.
  return static_cast<uint16_t>(sign + ((exponent + 14) << 10) + fraction);
}

double from_half(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  double size;
  if (exponent == 31) {
    size = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  }
  return std::copysign(size, half & 0x8000 ? -1.0 : 1.0);
}

// ----------------------------------------------------------------------------------------------------- writing

void ValueWriter::count(uint64_t value) {
  while (value >= 128) {
    out_ += static_cast<char>(value | 128);
    value >>= 7;
  }
  out_ += static_cast<char>(value);
}

void ValueWriter::integer(int64_t value) {
  tag(ValueTag::integer);
  count(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void ValueWriter::big_integer(bool is_negative, Bytes magnitude) {
  tag(ValueTag::big_integer);
  out_ += static_cast<char>(is_negative);
  count(magnitude.size());
  out_ += text_of(magnitude);
}

void ValueWriter::real(double value) {
  tag(ValueTag::real);
  out_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ValueWriter::text(std::string_view utf8) {
  tag(ValueTag::text);
  field_name(utf8);
}

void ValueWriter::bytes(Bytes value) {
  tag(ValueTag::bytes);
  field_name(text_of(value));
}

void ValueWriter::begin_list(uint64_t items) {
  tag(ValueTag::list);
  count(items);
}

void ValueWriter::begin_tuple(uint64_t items) {
  tag(ValueTag::tuple);
  count(items);
}

void ValueWriter::begin_dict(uint64_t pairs) {
  tag(ValueTag::dict);
  count(pairs);
}

void ValueWriter::begin_record(std::string_view name, uint64_t fields) {
  tag(ValueTag::record);
  field_name(name);
  count(fields);
}

void ValueWriter::field_name(std::string_view name) {
  count(name.size());
  out_ += name;
}

void ValueWriter::array(ValueTag array_tag, const ArrayShape& shape, Bytes data, bool as_float16) {
  tag(array_tag);
  out_ += static_cast<char>(shape.type);
  const size_t form_place = out_.size();
  out_ += static_cast<char>(kRawForm);
  out_ += static_cast<char>(shape.dimensions.size());
  for (const uint64_t dimension : shape.dimensions) count(dimension);

  const uint64_t elements = shape.element_count();
  const size_t size = bytes_per_element(shape.type);
  if (is_integer(shape.type) && size > 1) {
    if (const size_t width = packed_width(shape.type, data, elements); width < size) {
      out_[form_place] = static_cast<char>(width);
      for (uint64_t i = 0; i < elements; ++i)
        out_.append(reinterpret_cast<const char*>(data.data()) + i * size, width);
      return;
    }
  }
  if (as_float16 && ((shape.type == ElementType::f32 && append_halves<float>(out_, data, elements)) ||
                     (shape.type == ElementType::f64 && append_halves<double>(out_, data, elements)))) {
    out_[form_place] = static_cast<char>(kHalfForm);
    return;
  }
  out_ += text_of(data);
}

// ----------------------------------------------------------------------------------------------------- reading

Result<Bytes> ValueReader::take(uint64_t byte_count) {
  if (byte_count > rest_.size())
    return damaged("ends " + std::to_string(byte_count - rest_.size()) + " bytes too early");
  const Bytes piece = rest_.first(byte_count);
  rest_ = rest_.subspan(byte_count);
  return piece;
}

Result<uint64_t> ValueReader::count() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    LMEMO_ASSIGN(const Bytes byte, take(1));
    const auto bits = static_cast<uint64_t>(byte[0]);
    if (shift == 63 && bits > 1) break;
    value |= (bits & 127) << shift;
    if (bits < 128) return value;
  }
  return damaged("a count of more than 64 bits");
}

Result<std::string_view> ValueReader::counted_text() {
  LMEMO_ASSIGN(const uint64_t size, count());
  LMEMO_ASSIGN(const Bytes text, take(size));
  return text_of(text);
}

Result<std::string_view> ValueReader::field_name() { return counted_text(); }

Status ValueReader::begin() {
  LMEMO_ASSIGN(const Bytes version, take(1));
  if (static_cast<uint8_t>(version[0]) == kValueVersion) return {};
  return Error{ErrorCode::incompatible, "stored value: version " +
                                            std::to_string(static_cast<uint8_t>(version[0])) +
                                            ", this lmemo reads " + std::to_string(kValueVersion)};
}

Status ValueReader::end() const {
  if (rest_.empty()) return {};
  return damaged(std::to_string(rest_.size()) + " bytes follow the value");
}

Status ValueReader::read_array(ValueItem& item) {
  LMEMO_ASSIGN(const Bytes head, take(3));
  const auto type = static_cast<uint8_t>(head[0]);
  item.form = static_cast<uint8_t>(head[1]);
  const auto dimensions = static_cast<uint8_t>(head[2]);
  if (type > kLastType) return damaged("an array of type " + std::to_string(type));
  if (dimensions > kMaxArrayDimensions)
    return damaged("an array of " + std::to_string(dimensions) + " dimensions");
  if (item.tag == ValueTag::scalar && dimensions != 0) return damaged("a scalar with dimensions");
  item.shape.type = static_cast<ElementType>(type);
  // The product of all that are not zero stays in range, so that no order of multiplying overflows.
  uint64_t elements = 1;
  bool is_empty = false;
  for (unsigned i = 0; i < dimensions; ++i) {
    LMEMO_ASSIGN(const uint64_t dimension, count());
    if (dimension > kMaxDimension || (dimension > 0 && elements > kMaxDimension / dimension))
      return damaged("an array that no memory holds");
    item.shape.dimensions.push_back(dimension);
    if (dimension == 0)
      is_empty = true;
    else
      elements *= dimension;
  }
  if (is_empty) elements = 0;

  size_t width = bytes_per_element(item.shape.type);
  if (item.form == kHalfForm) {
    if (item.shape.type != ElementType::f32 && item.shape.type != ElementType::f64)
      return damaged("half precision of what is not a float");
    width = 2;
  } else if (item.form != kRawForm) {
    if (!is_integer(item.shape.type) || item.form >= width)
      return damaged("form " + std::to_string(item.form) + " of an array");
    width = item.form;
  }
  LMEMO_ASSIGN(item.data, take(elements * width));
  return {};
}

Result<ValueItem> ValueReader::next() {
  LMEMO_ASSIGN(const Bytes tag, take(1));
  if (static_cast<uint8_t>(tag[0]) > kLastTag)
    return damaged("tag " + std::to_string(static_cast<uint8_t>(tag[0])));
  ValueItem item;
  item.tag = static_cast<ValueTag>(tag[0]);
  uint64_t least_bytes_each = 1;
  switch (item.tag) {
    case ValueTag::none:
    case ValueTag::no:
    case ValueTag::yes: break;
    case ValueTag::integer: {
      LMEMO_ASSIGN(const uint64_t zigzag, count());
      item.integer = static_cast<int64_t>(zigzag >> 1 ^ (~(zigzag & 1) + 1));
      break;
    }
    case ValueTag::big_integer: {
      LMEMO_ASSIGN(const Bytes sign, take(1));
      if (static_cast<uint8_t>(sign[0]) > 1) return damaged("a sign that is none");
      item.is_negative = sign[0] != std::byte{0};
      LMEMO_ASSIGN(item.text, counted_text());
      break;
    }
    case ValueTag::real: {
      LMEMO_ASSIGN(const Bytes bits, take(sizeof item.real));
      std::memcpy(&item.real, bits.data(), sizeof item.real);
      break;
    }
    case ValueTag::text:
    case ValueTag::bytes: {
      LMEMO_ASSIGN(item.text, counted_text());
      break;
    }
    case ValueTag::record: {
      LMEMO_ASSIGN(item.text, counted_text());
      [[fallthrough]];
    }
    case ValueTag::dict: least_bytes_each = 2; [[fallthrough]];
    case ValueTag::list:
    case ValueTag::tuple: {
      LMEMO_ASSIGN(item.count, count());
      // Nobody reserves room for more than can follow.
      if (item.count > rest_.size() / least_bytes_each)
        return damaged("a container that is longer than the value");
      break;
    }
    case ValueTag::array:
    case ValueTag::tensor:
    case ValueTag::scalar: LMEMO_TRY(read_array(item));
  }
  return item;
}

void ValueItem::unpack_array(std::byte* out) const {
  if (data.empty()) return;
  const uint64_t elements = shape.element_count();
  const size_t size = bytes_per_element(shape.type);
  if (form == kRawForm) {
    std::memcpy(out, data.data(), data.size());
  } else if (form == kHalfForm) {
    shape.type == ElementType::f32 ? unpack_halves<float>(data, elements, out)
                                   : unpack_halves<double>(data, elements, out);
  } else {
    std::memset(out, 0, elements * size);
    for (uint64_t i = 0; i < elements; ++i) std::memcpy(out + i * size, data.data() + i * form, form);
  }
}

namespace {

Status check_one(ValueReader& reader, int depth) {
  if (depth > kMaxValueDepth) return damaged("nested too deeply");
  LMEMO_ASSIGN(const ValueItem item, reader.next());
  const uint64_t values_each = item.tag == ValueTag::dict ? 2 : 1;
  for (uint64_t i = 0; i < item.count; ++i) {
    if (item.tag == ValueTag::record) LMEMO_TRY(reader.field_name());
    for (uint64_t part = 0; part < values_each; ++part) LMEMO_TRY(check_one(reader, depth + 1));
  }
  return {};
}

}  // namespace

Status check_value(Bytes bytes) {
  ValueReader reader(bytes);
  LMEMO_TRY(reader.begin());
  LMEMO_TRY(check_one(reader, 0));
  return reader.end();
}

}  // namespace lmemo
