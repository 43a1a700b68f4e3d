// Field values, sizes, ages, times and paths between Python and C++. All of it needs the GIL, and raises.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/key.h"

namespace lmemo::python {

// Any str, lone surrogates included, as UTF-8; two different strings never become the same bytes.
std::string utf8_of(nanobind::handle text);
// The reverse. Bytes that no str encodes to, which only other languages can have put there, are shown as
// \xff.
nanobind::object text_to_python(std::string_view text);
nanobind::list texts_to_python(const std::vector<std::string>& texts);
nanobind::object bytes_to_python(Bytes bytes);

nanobind::object field_value_to_python(const FieldValue& value);
nanobind::dict fields_to_python(const Key& key);
// `mapping` is a Mapping or None; both parts together are the fields. Raises a TypeError or ValueError that
// names the field.
std::vector<Field> fields_of(nanobind::handle mapping, nanobind::handle named);

// 4096 or "4KiB"; `name` is for the error.
uint64_t byte_count_of(nanobind::handle value, const char* name);
// A number of seconds, a timedelta, or "30d".
double seconds_of(nanobind::handle value, const char* name);

// An aware datetime in UTC, cut to microseconds; None for 0.
nanobind::object time_to_python(int64_t time_ns);
std::filesystem::path path_of(nanobind::handle path);
nanobind::object path_to_python(const std::filesystem::path& path);

// The bytes of a bytes-like object, which stays locked against resizing meanwhile.
class BufferView {
 public:
  explicit BufferView(nanobind::handle value);
  ~BufferView();
  BufferView(BufferView&& other) noexcept;
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  Bytes bytes() const { return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)}; }

 private:
  Py_buffer view_;
};

}  // namespace lmemo::python
