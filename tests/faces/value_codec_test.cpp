#include "faces/forward/value_codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace lmemo {
namespace {

template <typename T>
Bytes bytes_in(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// A value with one of everything.
std::string sample() {
  std::string out;
  ValueWriter writer(out);
  writer.begin();
  writer.begin_list(9);
  writer.none();
  writer.begin_tuple(2);
  writer.boolean(true);
  writer.boolean(false);
  writer.integer(-300);
  writer.big_integer(true, bytes_of("123456789"));
  writer.real(-0.0);
  writer.begin_dict(1);
  writer.text("key");
  writer.bytes(bytes_of("value"));
  writer.begin_record("a.B", 1);
  writer.field_name("x");
  writer.integer(1);
  writer.array(ValueTag::array, {ElementType::i64, {2, 2}}, bytes_in<int64_t>({1, 2, 3, 70000}), false);
  writer.array(ValueTag::tensor, {ElementType::f32, {2}}, bytes_in<float>({0.5f, -1.0f}), true);
  return out;
}

}  // namespace

TEST_CASE("what is written is read") {
  const std::string encoded = sample();
  CHECK(check_value(bytes_of(encoded)).ok());
  ValueReader reader(bytes_of(encoded));
  REQUIRE(reader.begin().ok());
  CHECK(reader.next()->count == 9);
  CHECK(reader.next()->tag == ValueTag::none);
  CHECK(reader.next()->tag == ValueTag::tuple);
  CHECK(reader.next()->tag == ValueTag::yes);
  CHECK(reader.next()->tag == ValueTag::no);
  CHECK(reader.next()->integer == -300);
  const auto big = reader.next();
  CHECK((big->is_negative && big->text == "123456789"));
  CHECK(std::signbit(reader.next()->real));
  CHECK(reader.next()->count == 1);
  CHECK(reader.next()->text == "key");
  CHECK(reader.next()->text == "value");
  CHECK(reader.next()->text == "a.B");
  CHECK(*reader.field_name() == "x");
  CHECK(reader.next()->integer == 1);
  const auto array = reader.next();
  CHECK(array->data.size() == 4 * 3);  // 70,000 needs three bytes.
  std::vector<int64_t> elements(4);
  REQUIRE(array->array_bytes() == 32);
  array->unpack_array(reinterpret_cast<std::byte*>(elements.data()));
  CHECK(elements == std::vector<int64_t>{1, 2, 3, 70000});
  const auto tensor = reader.next();
  CHECK(tensor->data.size() == 2 * 2);
  std::vector<float> floats(2);
  tensor->unpack_array(reinterpret_cast<std::byte*>(floats.data()));
  CHECK(floats == std::vector<float>{0.5f, -1.0f});
  CHECK(reader.end().ok());
}

TEST_CASE("the bytes are those of the page") {
  std::string out;
  ValueWriter writer(out);
  writer.begin();
  writer.begin_tuple(2);
  writer.real(-1.5);
  writer.boolean(true);
  CHECK(out == std::string("\x01\x09\x02\x05\x00\x00\x00\x00\x00\x00\xf8\xbf\x02", 13));
}

TEST_CASE("a value cut anywhere is damaged, and so is one with something behind it") {
  const std::string whole = sample();
  for (size_t cut = 0; cut < whole.size(); ++cut)
    CHECK_FALSE(check_value(bytes_of(whole.substr(0, cut))).ok());
  CHECK_FALSE(check_value(bytes_of(whole + '\0')).ok());
}

TEST_CASE("any byte may be flipped") {
  const std::string whole = sample();
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      static_cast<void>(check_value(bytes_of(damaged)));
    }
}

TEST_CASE("integers of every size come back") {
  for (int shift = 0; shift < 64; ++shift)
    for (const int64_t value :
         {int64_t{1} << shift, -(int64_t{1} << (shift % 63)), (int64_t{1} << (shift % 63)) - 1}) {
      std::string out;
      ValueWriter writer(out);
      writer.begin();
      writer.integer(value);
      ValueReader reader(bytes_of(out));
      REQUIRE(reader.begin().ok());
      CHECK(reader.next()->integer == value);
    }
}

TEST_CASE("every half comes back") {
  for (unsigned half = 0; half < 65536; ++half) {
    const double value = from_half(static_cast<uint16_t>(half));
    if (!std::isnan(value)) CHECK(half_of(value) == half);
  }
  CHECK(half_of(65519.99) == 0x7BFF);
  CHECK(half_of(65520) == 0x7C00);
  CHECK(half_of(0x1p-25) == 0);
  CHECK(half_of(0x1.8p-25) == 1);
  CHECK(std::isnan(from_half(half_of(NAN))));
}

TEST_CASE("counts that cannot be take no memory") {
  CHECK_FALSE(check_value(bytes_of(std::string("\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11))).ok());
  CHECK_FALSE(
      check_value(bytes_of(std::string("\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12))).ok());
  CHECK_FALSE(check_value(bytes_of(std::string("\x01\x06\xff\xff\xff\x7f", 6))).ok());
  // Two dimensions whose product wraps around to zero.
  std::string wraps("\x01\x0c\x0a\x00\x02", 5);
  for (int n = 0; n < 2; ++n) wraps += std::string("\x80\x80\x80\x80\x80\x20", 6);
  CHECK_FALSE(check_value(bytes_of(wraps)).ok());
}

}  // namespace lmemo
