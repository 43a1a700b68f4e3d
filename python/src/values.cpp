#include "values.h"

#include <datetime.h>

#include <chrono>
#include <cmath>

#include "base/units.h"
#include "errors.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

nb::object steal_or_raise(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// A numpy scalar as the Python value of its type, or nothing if it is none. numpy is not imported for this:
// without it there are no numpy scalars. datetime64 and longdouble are left out, because item() would change
// what they mean.
nb::object value_of_numpy_scalar(nb::handle value) {
  const nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
  if (!numpy.is_valid()) {
    PyErr_Clear();
    return {};
  }
  if (!nb::hasattr(numpy, "generic") || !nb::isinstance(value, numpy.attr("generic"))) return {};
  const nb::object dtype = value.attr("dtype");
  const std::string kind = nb::str(dtype.attr("kind")).c_str();
  const bool is_number = kind == "b" || kind == "i" || kind == "u";
  const bool is_real = kind == "f" && nb::cast<int64_t>(dtype.attr("itemsize")) <= 8;
  if (!is_number && !is_real) return {};
  return value.attr("item")();
}

FieldValue integer_value_of(nb::handle value, nb::handle name) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) {
    PyErr_Format(PyExc_ValueError, "field %R: %R does not fit into 64 bits; give it as str or bytes",
                 name.ptr(), value.ptr());
    throw nb::python_error();
  }
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return FieldValue(int64_t{number});
}

FieldValue field_value_of(nb::handle value, nb::handle name) {
  PyObject* const object = value.ptr();
  if (object == Py_None) return FieldValue();
  if (PyBool_Check(object)) return FieldValue(object == Py_True);
  if (PyLong_Check(object)) return integer_value_of(value, name);
  if (PyFloat_Check(object)) return FieldValue(PyFloat_AS_DOUBLE(object));
  if (PyUnicode_Check(object)) return FieldValue(utf8_of(value));
  if (PyBytes_Check(object) || PyByteArray_Check(object))
    return FieldValue(Blob{std::string(text_of(BufferView(value).bytes()))});
  if (LongValue long_value; nb::try_cast(value, long_value)) return FieldValue(long_value);
  if (const nb::object plain = value_of_numpy_scalar(value); plain.is_valid())
    return field_value_of(plain, name);
  PyErr_Format(PyExc_TypeError,
               "field %R: a value of type %.200s cannot be part of a key; expected None, bool, int, float, "
               "str or bytes",
               name.ptr(), Py_TYPE(object)->tp_name);
  throw nb::python_error();
}

void append_field(std::vector<Field>& fields, nb::handle name, nb::handle value) {
  if (!PyUnicode_Check(name.ptr())) {
    PyErr_Format(PyExc_TypeError, "field name %R: expected str, found %.200s", name.ptr(),
                 Py_TYPE(name.ptr())->tp_name);
    throw nb::python_error();
  }
  fields.push_back({utf8_of(name), field_value_of(value, name)});
}

// Loaded at the first use: `import lmemo` does not need it.
void load_datetime() {
  if (PyDateTimeAPI == nullptr) PyDateTime_IMPORT;
  if (PyDateTimeAPI == nullptr) throw nb::python_error();
}

struct FieldValueToPython {
  nb::object operator()(std::monostate) const { return nb::none(); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(const std::string& value) const { return text_to_python(value); }
  nb::object operator()(const Blob& value) const { return bytes_to_python(bytes_of(value.bytes)); }
  nb::object operator()(const LongValue& value) const { return nb::cast(value); }
};

}  // namespace

std::string utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {data, static_cast<size_t>(size)};
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
  PyErr_Clear();
  const nb::object encoded = steal_or_raise(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  return {PyBytes_AS_STRING(encoded.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr()))};
}

nb::object text_to_python(std::string_view text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  if (PyObject* exact = PyUnicode_DecodeUTF8(text.data(), size, "surrogatepass")) return nb::steal(exact);
  PyErr_Clear();
  return steal_or_raise(PyUnicode_DecodeUTF8(text.data(), size, "backslashreplace"));
}

nb::list texts_to_python(const std::vector<std::string>& texts) {
  nb::list result;
  for (const std::string& text : texts) result.append(text_to_python(text));
  return result;
}

nb::object bytes_to_python(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::object field_value_to_python(const FieldValue& value) {
  return std::visit(FieldValueToPython{}, value.variant());
}

nb::dict fields_to_python(const Key& key) {
  nb::dict fields;
  for (const Field& field : key.fields())
    fields[text_to_python(field.name)] = field_value_to_python(field.value);
  return fields;
}

std::vector<Field> fields_of(nb::handle mapping, nb::handle named) {
  std::vector<Field> fields;
  fields.reserve(nb::len(named) + (mapping.is_none() ? 0 : nb::len_hint(mapping)));
  if (PyDict_CheckExact(mapping.ptr())) {
    for (const auto [name, value] : nb::borrow<nb::dict>(mapping)) append_field(fields, name, value);
  } else if (PyMapping_Check(mapping.ptr()) && nb::hasattr(mapping, "items")) {
    for (const nb::handle item : mapping.attr("items")()) append_field(fields, item[0], item[1]);
  } else if (!mapping.is_none()) {
    PyErr_Format(PyExc_TypeError, "fields: expected a mapping from names to values, found %.200s",
                 Py_TYPE(mapping.ptr())->tp_name);
    throw nb::python_error();
  }
  for (const auto [name, value] : nb::borrow<nb::dict>(named)) append_field(fields, name, value);
  return fields;
}

uint64_t byte_count_of(nb::handle value, const char* name) {
  if (PyUnicode_Check(value.ptr())) return value_or_raise(parse_byte_limit(utf8_of(value)));
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Format(PyExc_TypeError, "%s: expected a number of bytes or a text like \"10GiB\", found %.200s",
                 name, Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
  }
  const uint64_t count = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: %R is not a number of bytes", name, number.ptr());
    throw nb::python_error();
  }
  return count;
}

double seconds_of(nb::handle value, const char* name) {
  if (PyUnicode_Check(value.ptr())) return value_or_raise(parse_duration_seconds(utf8_of(value)));
  nb::object number = nb::borrow(value);
  load_datetime();
  if (PyDelta_Check(value.ptr())) number = value.attr("total_seconds")();
  const double seconds = PyFloat_AsDouble(number.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s: expected seconds, a timedelta or a text like \"30d\", found %.200s",
                 name, Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
  }
  if (!std::isfinite(seconds) || seconds < 0) {
    PyErr_Format(PyExc_ValueError, "%s: %R is not a length of time", name, value.ptr());
    throw nb::python_error();
  }
  return seconds;
}

nb::object time_to_python(int64_t time_ns) {
  using namespace std::chrono;
  if (time_ns == 0) return nb::none();
  load_datetime();
  const sys_time<microseconds> time{floor<microseconds>(nanoseconds(time_ns))};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<microseconds> clock(time - day);
  return steal_or_raise(PyDateTimeAPI->DateTime_FromDateAndTime(
      static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
      static_cast<int>(static_cast<unsigned>(date.day())), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()), PyDateTime_TimeZone_UTC, PyDateTimeAPI->DateTimeType));
}

std::filesystem::path path_of(nb::handle path) {
  PyObject* converted = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &converted) == 0) throw nb::python_error();
  const nb::object owner = nb::steal(converted);
  return std::string(PyBytes_AS_STRING(converted), static_cast<size_t>(PyBytes_GET_SIZE(converted)));
}

nb::object path_to_python(const std::filesystem::path& path) {
  const nb::object text = steal_or_raise(PyUnicode_DecodeFSDefault(path.c_str()));
  return nb::module_::import_("pathlib").attr("Path")(text);
}

BufferView::BufferView(nb::handle value) {
  if (PyObject_GetBuffer(value.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
}

BufferView::BufferView(BufferView&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }

BufferView::~BufferView() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

}  // namespace lmemo::python
