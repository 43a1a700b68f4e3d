// Results of scoring calls as bytes: None, booleans, integers, floats, texts, bytes, lists, tuples, dicts, records (dataclasses by name) and arrays.
// Never code: reading makes values and nothing else, and every length is checked before memory is taken.
//
// The first byte is the version. Then one value: a tag and what belongs to it, counts and lengths as LEB128.
//
//   01  09 02  05 00 00 00 00 00 00 f8 bf  02            (-1.5, True)
//
// Arrays are kept in fewer bytes where that loses nothing: integers in as few bytes as the largest needs, so token ids of a vocabulary of
// 50,000 take two bytes each whatever their type was. Floats are exact, unless half precision was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

inline constexpr uint8_t kValueVersion = 1;
inline constexpr int kMaxValueDepth = 64;
inline constexpr size_t kMaxArrayDimensions = 32;

// Changing a number changes the format: raise kValueVersion.
enum class ValueTag : uint8_t {
  none = 0,
  no = 1,
  yes = 2,
  integer = 3,      // Zigzag.
  big_integer = 4,  // Sign, then the magnitude, little-endian.
  real = 5,         // The 8 bytes of a double, whatever they mean.
  text = 6,         // UTF-8, halves of surrogate pairs included.
  bytes = 7,
  list = 8,
  tuple = 9,
  dict = 10,
  record = 11,  // The name of a class, then pairs of a field's name and its value.
  array = 12,
  tensor = 13,
  scalar = 14,  // An array without dimensions that was not one.
};

enum class ElementType : uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  c64,
  c128,
  bf16
};
size_t bytes_per_element(ElementType type);
bool is_integer(ElementType type);

struct ArrayShape {
  ElementType type = ElementType::f32;
  std::vector<uint64_t> dimensions;
  uint64_t element_count() const;
};

class ValueWriter {
 public:
  explicit ValueWriter(std::string& out) : out_(out) {}

  void begin() { out_ += static_cast<char>(kValueVersion); }  // Once, first.
  void none() { tag(ValueTag::none); }
  void boolean(bool value) { tag(value ? ValueTag::yes : ValueTag::no); }
  void integer(int64_t value);
  void big_integer(bool is_negative, Bytes magnitude);
  void real(double value);
  void text(std::string_view utf8);
  void bytes(Bytes value);
  // Followed by so many values; a dict by so many pairs of them.
  void begin_list(uint64_t count);
  void begin_tuple(uint64_t count);
  void begin_dict(uint64_t count);
  // Followed by so many pairs of field_name() and a value.
  void begin_record(std::string_view name, uint64_t count);
  void field_name(std::string_view name);
  // `data` holds the elements one after another, last dimension first. `tag` is array, tensor or scalar.
  void array(ValueTag tag, const ArrayShape& shape, Bytes data, bool as_float16);

 private:
  void tag(ValueTag tag) { out_ += static_cast<char>(tag); }
  void count(uint64_t value);

  std::string& out_;
};

// One step of a value: what it is, and for containers how many follow.
struct ValueItem {
  ValueTag tag = ValueTag::none;
  int64_t integer = 0;
  double real = 0;
  bool is_negative = false;
  std::string_view text;  // Of text, bytes, a big integer's magnitude, a record's name.
  uint64_t count = 0;     // Of a container.
  ArrayShape shape;
  uint8_t form = 0;  // How the elements are kept.
  Bytes data;

  uint64_t array_bytes() const { return shape.element_count() * bytes_per_element(shape.type); }
  // Writes the elements to `out`. Requires: room for array_bytes().
  void unpack_array(std::byte* out) const;
};

class ValueReader {
 public:
  explicit ValueReader(Bytes bytes) : rest_(bytes) {}

  // Incompatible: another version. Corruption: not an encoding of a value.
  Status begin();
  Result<ValueItem> next();
  Result<std::string_view> field_name();
  // Nothing may follow the value.
  Status end() const;

 private:
  Result<uint64_t> count();
  Result<Bytes> take(uint64_t byte_count);
  Result<std::string_view> counted_text();
  Status read_array(ValueItem& item);

  Bytes rest_;
};

// Reads a whole value and keeps nothing of it.
Status check_value(Bytes bytes);

// To the nearest, ties to even, as numpy does; what is too large becomes infinite.
uint16_t half_of(double value);
double from_half(uint16_t half);

}  // namespace lmemo
