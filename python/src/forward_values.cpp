#include "forward_values.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <vector>

#include "errors.h"
#include "faces/forward/value_codec.h"
#include "forward_bindings.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

struct TypeRow {
  ElementType type;
  const char* numpy;  // As in dtype.str.
  const char* torch;  // As in str(dtype), after "torch."; nullptr: torch has none.
};
constexpr TypeRow kTypes[] = {
    {ElementType::boolean, "|b1", "bool"},  {ElementType::i8, "|i1", "int8"},
    {ElementType::i16, "<i2", "int16"},     {ElementType::i32, "<i4", "int32"},
    {ElementType::i64, "<i8", "int64"},     {ElementType::u8, "|u1", "uint8"},
    {ElementType::u16, "<u2", nullptr},     {ElementType::u32, "<u4", nullptr},
    {ElementType::u64, "<u8", nullptr},     {ElementType::f16, "<f2", "float16"},
    {ElementType::f32, "<f4", "float32"},   {ElementType::f64, "<f8", "float64"},
    {ElementType::c64, "<c8", "complex64"}, {ElementType::c128, "<c16", "complex128"},
    {ElementType::bf16, "<i2", "bfloat16"},  // numpy has none: its bits travel as integers.
};

nb::object or_raise(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// A module that somebody else has imported; a value of its types cannot exist otherwise.
nb::object loaded_module(const char* name) {
  const nb::object module = nb::steal(PyImport_GetModule(nb::str(name).ptr()));
  if (!module.is_valid()) PyErr_Clear();
  return module;
}

bool is_true(const nb::object& object) { return PyObject_IsTrue(object.ptr()) == 1; }

// What lmemo/forward.py knows of dataclasses.
nb::object helper(const char* name) { return nb::module_::import_("lmemo.forward").attr(name); }

// Made without running the code of the class: what was stored is the fields.
nb::object bare_object_of(const nb::object& type) {
  return nb::borrow(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__new__")(type);
}

class Encoder {
 public:
  Encoder(std::string& out, bool as_float16) : writer_(out), as_float16_(as_float16) {}

  bool value(nb::handle value) {
    writer_.begin();
    return any(value.ptr(), 0);
  }

 private:
  bool any(PyObject* value, int depth) {
    if (depth > kMaxValueDepth) return false;
    if (value == Py_None) return writer_.none(), true;
    if (PyBool_Check(value)) return writer_.boolean(value == Py_True), true;
    if (PyFloat_CheckExact(value)) return writer_.real(PyFloat_AS_DOUBLE(value)), true;
    if (PyLong_CheckExact(value)) return integer(value);
    if (PyUnicode_CheckExact(value)) return writer_.text(utf8_of(value)), true;
    if (PyBytes_CheckExact(value)) return writer_.bytes(BufferView(value).bytes()), true;
    if (PyList_CheckExact(value)) {
      // Nobody else's code runs between the items; in free-threaded Python a copy keeps them together.
      const nb::object items = or_raise(PyList_AsTuple(value));
      writer_.begin_list(static_cast<uint64_t>(PyTuple_GET_SIZE(items.ptr())));
      return items_of(items.ptr(), depth);
    }
    if (PyTuple_CheckExact(value)) {
      writer_.begin_tuple(static_cast<uint64_t>(PyTuple_GET_SIZE(value)));
      return items_of(value, depth);
    }
    if (PyDict_CheckExact(value)) return dict(value, depth);
    return other(value, depth);
  }

  bool items_of(PyObject* tuple, int depth) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
      if (!any(PyTuple_GET_ITEM(tuple, i), depth + 1)) return false;
    return true;
  }

  bool integer(PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return writer_.integer(number), true;
    const nb::object magnitude = or_raise(PyNumber_Absolute(value));
    const uint64_t bits = nb::cast<uint64_t>(magnitude.attr("bit_length")());
    const nb::object bytes = magnitude.attr("to_bytes")((bits + 7) / 8, "little");
    writer_.big_integer(overflow < 0, BufferView(bytes).bytes());
    return true;
  }

  bool dict(PyObject* value, int depth) {
    const nb::object items = or_raise(PyDict_Items(value));
    writer_.begin_dict(static_cast<uint64_t>(PyList_GET_SIZE(items.ptr())));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i)
      if (!items_of(PyList_GET_ITEM(items.ptr(), i), depth)) return false;
    return true;
  }

  bool other(PyObject* value, int depth) {
    if (const nb::object numpy = loaded_module("numpy"); numpy.is_valid()) {
      if (Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(numpy.attr("ndarray").ptr()))
        return array(ValueTag::array, nb::borrow(value), std::nullopt);
      if (nb::isinstance(value, numpy.attr("generic"))) return scalar(numpy, value);
    }
    if (const nb::object torch = loaded_module("torch");
        torch.is_valid() && Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(torch.attr("Tensor").ptr()))
      return tensor(torch, value);
    if (PyType_Check(value) || !nb::hasattr(value, "__dataclass_fields__")) return false;
    return record(value, depth);
  }

  bool scalar(const nb::object& numpy, PyObject* value) {
    const nb::object as_array = numpy.attr("asarray")(nb::handle(value));
    // A class of one's own derived from a numpy scalar is not one of numpy's.
    if (!as_array.attr("dtype").attr("type").is(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(value)))))
      return false;
    return array(ValueTag::scalar, as_array, std::nullopt);
  }

  bool array(ValueTag tag, nb::object value, std::optional<ElementType> type) {
    if (!type) {
      const nb::object dtype = value.attr("dtype");
      if (is_true(dtype.attr("hasobject"))) return false;
      const std::string name = nb::cast<std::string>(dtype.attr("str"));
      for (const TypeRow& row : kTypes)
        if (name == row.numpy && row.type != ElementType::bf16) type = row.type;
      if (!type || !dtype.attr("fields").is_none()) return false;
    }
    ArrayShape shape{*type, {}};
    for (const nb::handle dimension : value.attr("shape"))
      shape.dimensions.push_back(nb::cast<uint64_t>(dimension));
    if (shape.dimensions.size() > kMaxArrayDimensions) return false;
    if (!is_true(value.attr("flags").attr("c_contiguous"))) value = value.attr("copy")("C");
    writer_.array(tag, shape, BufferView(value).bytes(), as_float16_ && tag != ValueTag::scalar);
    return true;
  }

  // One that lives elsewhere or learns would not come back as what it was.
  bool tensor(const nb::object& torch, PyObject* value) {
    nb::object given = nb::borrow(value);
    if (is_true(given.attr("requires_grad")) || utf8_of(given.attr("device").attr("type")) != "cpu" ||
        !given.attr("layout").is(torch.attr("strided")) || is_true(given.attr("is_conj")()) ||
        is_true(given.attr("is_neg")()))
      return false;
    const std::string name = utf8_of(or_raise(PyObject_Str(given.attr("dtype").ptr())));
    for (const TypeRow& row : kTypes) {
      if (row.torch == nullptr || name != std::string("torch.") + row.torch) continue;
      if (row.type == ElementType::bf16) given = given.attr("view")(torch.attr("int16"));
      return array(ValueTag::tensor, given.attr("numpy")(), row.type);
    }
    return false;
  }

  bool record(PyObject* value, int depth) {
    const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value)));
    // A list, an exception or the like keeps more than its fields. Raises for those.
    static_cast<void>(bare_object_of(type));
    const nb::object name = helper("_name_of")(type);
    const nb::object fields = helper("_fields_of")(type);
    const auto count = static_cast<uint64_t>(PyTuple_GET_SIZE(fields.ptr()));
    // Attributes beyond the fields would be lost.
    if (const nb::object more = nb::getattr(value, "__dict__", nb::none()); !more.is_none())
      for (const nb::handle attribute : more)
        if (PySequence_Contains(fields.ptr(), attribute.ptr()) != 1) return false;
    writer_.begin_record(utf8_of(name), count);
    for (const nb::handle field : fields) {
      const nb::object part = nb::getattr(value, field, nb::object());
      if (!part.is_valid()) return false;
      writer_.field_name(utf8_of(field));
      if (!any(part.ptr(), depth + 1)) return false;
    }
    return true;
  }

  ValueWriter writer_;
  const bool as_float16_;
};

// Thrown inside the decoder only; nothing else unwinds through Python's frames here.
struct Damaged {
  Error error;
};

class Decoder {
 public:
  explicit Decoder(Bytes bytes) : reader_(bytes) {}

  Result<nb::object> value() {
    try {
      LMEMO_TRY(reader_.begin());
      nb::object result = any(0);
      LMEMO_TRY(reader_.end());
      return result;
    } catch (const Damaged& damaged) {
      return damaged.error;
    }
  }

 private:
  template <typename T>
  static T checked(Result<T> result) {
    if (!result.ok()) throw Damaged{result.error()};
    return std::move(result).value();
  }
  [[noreturn]] static void damaged(const char* what) {
    throw Damaged{{ErrorCode::corruption, std::string("stored value: ") + what}};
  }

  nb::object any(int depth) {
    if (depth > kMaxValueDepth) damaged("nested too deeply");
    const ValueItem item = checked(reader_.next());
    switch (item.tag) {
      case ValueTag::none: return nb::none();
      case ValueTag::no: return nb::bool_(false);
      case ValueTag::yes: return nb::bool_(true);
      case ValueTag::integer: return or_raise(PyLong_FromLongLong(item.integer));
      case ValueTag::big_integer: {
        const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(&PyLong_Type));
        const nb::object magnitude =
            type.attr("from_bytes")(nb::bytes(item.text.data(), item.text.size()), "little");
        return item.is_negative ? or_raise(PyNumber_Negative(magnitude.ptr())) : magnitude;
      }
      case ValueTag::real: return or_raise(PyFloat_FromDouble(item.real));
      case ValueTag::text: return text(item.text);
      case ValueTag::bytes: return nb::bytes(item.text.data(), item.text.size());
      case ValueTag::list: {
        nb::object list = or_raise(PyList_New(0));  // Grows: until it is whole, nobody must see empty places.
        for (uint64_t i = 0; i < item.count; ++i)
          if (PyList_Append(list.ptr(), any(depth + 1).ptr()) != 0) throw nb::python_error();
        return list;
      }
      case ValueTag::tuple: {
        std::vector<nb::object> items;
        items.reserve(item.count);
        for (uint64_t i = 0; i < item.count; ++i) items.push_back(any(depth + 1));
        nb::object tuple = or_raise(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
        for (size_t i = 0; i < items.size(); ++i)
          PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), items[i].release().ptr());
        return tuple;
      }
      case ValueTag::dict: {
        nb::object dict = or_raise(PyDict_New());
        for (uint64_t i = 0; i < item.count; ++i) {
          const nb::object key = any(depth + 1);
          const nb::object value = any(depth + 1);
          if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) == 0) continue;
          if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
          PyErr_Clear();
          damaged("a dict with a key that cannot be one");
        }
        return dict;
      }
      case ValueTag::record: return record(item, depth);
      case ValueTag::array:
      case ValueTag::tensor:
      case ValueTag::scalar: return array(item);
    }
    damaged("a tag that is none");
  }

  static nb::object text(std::string_view utf8) {
    if (PyObject* text =
            PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogatepass"))
      return nb::steal(text);
    if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) throw nb::python_error();
    PyErr_Clear();
    damaged("a text that is no UTF-8");
  }

  nb::object record(const ValueItem& item, int depth) {
    const std::string name(item.text);
    const nb::object type = helper("_class_of")(text(item.text));
    nb::object fields = helper("_fields_of")(type);
    nb::object made = bare_object_of(type);
    std::string found_names;
    uint64_t matching = 0;
    for (uint64_t i = 0; i < item.count; ++i) {
      const nb::object field = text(checked(reader_.field_name()));
      const nb::object value = any(depth + 1);
      found_names += (i == 0 ? "" : ", ") + utf8_of(field);
      if (PySequence_Contains(fields.ptr(), field.ptr()) != 1) continue;
      ++matching;
      if (PyObject_GenericSetAttr(made.ptr(), field.ptr(), value.ptr()) != 0) throw nb::python_error();
    }
    if (matching != item.count || matching != static_cast<uint64_t>(PyTuple_GET_SIZE(fields.ptr()))) {
      const std::string expected = nb::cast<std::string>(nb::str(", ").attr("join")(fields));
      raise_error(
          {ErrorCode::incompatible, "a stored " + name + " has the fields " + found_names +
                                        "; the registered class has " + expected +
                                        "; clear what was stored (`lmemo forward clear`) or register the "
                                        "changed class under a new name"});
    }
    return made;
  }

  // numpy or torch. Whoever stored the value had it; who reads it may not.
  static nb::object imported(const char* module, const char* what) {
    if (PyObject* found = PyImport_ImportModule(module)) return nb::steal(found);
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) throw nb::python_error();
    PyErr_Clear();
    raise_error({ErrorCode::incompatible, std::string("what is stored is ") + what + ", and " + module +
                                              " cannot be imported here; install it to read it"});
  }

  static nb::object array(const ValueItem& item) {
    const TypeRow& row = kTypes[static_cast<size_t>(item.shape.type)];
    if (item.shape.type == ElementType::bf16 && item.tag != ValueTag::tensor) damaged("an array of bfloat16");
    if (item.tag == ValueTag::tensor && row.torch == nullptr) damaged("a tensor of a type that torch lacks");
    const nb::object numpy = imported("numpy", "an array");
    const nb::object shape = or_raise(PyTuple_New(static_cast<Py_ssize_t>(item.shape.dimensions.size())));
    for (size_t i = 0; i < item.shape.dimensions.size(); ++i)
      PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(i),
                       or_raise(PyLong_FromUnsignedLongLong(item.shape.dimensions[i])).release().ptr());
    const nb::object empty = numpy.attr("empty");
    const nb::object dtype = or_raise(PyUnicode_FromString(row.numpy));
    PyObject* const arguments[] = {shape.ptr(), dtype.ptr()};
    nb::object made = nb::steal(PyObject_Vectorcall(empty.ptr(), arguments, 2, nullptr));
    if (!made.is_valid()) {
      if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw nb::python_error();
      PyErr_Clear();
      damaged("an array that numpy refuses");
    }
    if (item.array_bytes() > 0) {
      Py_buffer view;
      if (PyObject_GetBuffer(made.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
      item.unpack_array(static_cast<std::byte*>(view.buf));
      PyBuffer_Release(&view);
    }
    if (item.tag == ValueTag::scalar) return made[nb::make_tuple()];
    if (item.tag == ValueTag::array) return made;
    const nb::object torch = imported("torch", "a tensor");
    const nb::object tensor = torch.attr("from_numpy")(made);
    return item.shape.type == ElementType::bf16 ? tensor.attr("view")(torch.attr("bfloat16")) : tensor;
  }

  ValueReader reader_;
};

}  // namespace

bool encode_value(nb::handle value, bool as_float16, std::string& out) {
  out.clear();
  try {
    return Encoder(out, as_float16).value(value);
  } catch (nb::python_error& error) {
    // Code of the value's own class ran, and failed. That costs a place in the store, not the result.
    if (!error.matches(PyExc_Exception)) throw;
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Result<nb::object> decode_value(Bytes bytes) { return Decoder(bytes).value(); }

void init_forward_values(nb::module_& m) {
  m.def(
      "encode_value",
      [](nb::handle value, bool float16) -> nb::object {
        std::string out;
        if (!encode_value(value, float16, out)) return nb::none();
        return nb::bytes(out.data(), out.size());
      },
      "value"_a.none(), "float16"_a = false,
      nb::sig("def encode_value(value: Any, float16: bool = False) -> bytes | None"),
      "The bytes that a store keeps of a result; None if it can only be kept in memory.");
  m.def(
      "decode_value", [](nb::handle data) { return value_or_raise(decode_value(BufferView(data).bytes())); },
      "data"_a, nb::sig("def decode_value(data: Buffer) -> Any"),
      "The result that encode_value() was given. Raises lmemo.Corruption for bytes that hold none, "
      "lmemo.Incompatible for a "
      "dataclass that is not registered, or an array or tensor whose library is not installed.");
}

}  // namespace lmemo::python
