#include "texts.h"

#include <cstring>
#include <deque>
#include <string>

#include "arrow_c_data.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// Owns what a producer handed out, and gives it back.
template <typename Handed>
struct Owned : Handed {
  Owned() : Handed{} {}
  ~Owned() {
    if (this->release) this->release(this);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

template <typename Number>
Number number_at(const void* buffer, int64_t index) {
  Number number;
  std::memcpy(&number, static_cast<const char*>(buffer) + index * static_cast<int64_t>(sizeof(Number)),
              sizeof(Number));
  return number;
}

[[noreturn]] void raise_value_error(const std::string& message) { throw nb::value_error(message.c_str()); }
[[noreturn]] void raise_type_error(const std::string& message) { throw nb::type_error(message.c_str()); }

bool is_null(const ArrowArray& array, int64_t index) {
  if (array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr) return false;
  return (static_cast<const uint8_t*>(array.buffers[0])[index / 8] >> (index % 8) & 1) == 0;
}

template <typename Offset>
std::string_view text_between(const ArrowArray& array, int64_t index) {
  const auto begin = number_at<Offset>(array.buffers[1], index);
  const auto end = number_at<Offset>(array.buffers[1], index + 1);
  if (begin < 0 || end < begin) raise_value_error("Arrow column: offsets that are not in order");
  if (begin == end) return {};
  return {static_cast<const char*>(array.buffers[2]) + begin, static_cast<size_t>(end - begin)};
}

// Of 16 bytes: the length, and the text itself or where it is.
std::string_view viewed_text(const ArrowArray& array, int64_t index) {
  const char* const view = static_cast<const char*>(array.buffers[1]) + index * 16;
  const auto byte_count = number_at<int32_t>(view, 0);
  if (byte_count < 0) raise_value_error("Arrow column: a length below zero");
  if (byte_count <= 12) return {view + 4, static_cast<size_t>(byte_count)};
  const auto buffer = number_at<int32_t>(view, 2);
  const auto offset = number_at<int32_t>(view, 3);
  if (buffer < 0 || buffer >= array.n_buffers - 3 || offset < 0)
    raise_value_error("Arrow column: a view without a buffer");
  return {static_cast<const char*>(array.buffers[2 + buffer]) + offset, static_cast<size_t>(byte_count)};
}

using TextAt = std::string_view (*)(const ArrowArray&, int64_t);

TextAt reader_of(const std::string& format) {
  if (format == "u" || format == "z") return text_between<int32_t>;
  if (format == "U" || format == "Z") return text_between<int64_t>;
  if (format == "vu" || format == "vz") return viewed_text;
  raise_type_error("an Arrow column of type '" + format + "'; expected strings or binary");
}

int64_t key_at(char format, const ArrowArray& array, int64_t index) {
  switch (format) {
    case 'c': return number_at<int8_t>(array.buffers[1], index);
    case 'C': return number_at<uint8_t>(array.buffers[1], index);
    case 's': return number_at<int16_t>(array.buffers[1], index);
    case 'S': return number_at<uint16_t>(array.buffers[1], index);
    case 'i': return number_at<int32_t>(array.buffers[1], index);
    case 'I': return number_at<uint32_t>(array.buffers[1], index);
    case 'l': return number_at<int64_t>(array.buffers[1], index);
    case 'L': return static_cast<int64_t>(number_at<uint64_t>(array.buffers[1], index));
    default: raise_type_error(std::string("an Arrow dictionary with keys of type '") + format + "'");
  }
}

// A table of one column counts as that column.
std::pair<const ArrowSchema*, const ArrowArray*> column_of(const ArrowSchema* schema,
                                                           const ArrowArray* array) {
  if (std::string_view(schema->format) != "+s") return {schema, array};
  if (schema->n_children != 1 || array->offset != 0) {
    std::string names;
    for (int64_t i = 0; i < schema->n_children; ++i)
      names += (i == 0 ? "" : ", ") + std::string(schema->children[i]->name ? schema->children[i]->name : "");
    raise_type_error("a table of " + std::to_string(schema->n_children) + " columns (" + names +
                     "); give one of them");
  }
  return {schema->children[0], array->children[0]};
}

void add_column(const ArrowSchema& whole_schema, const ArrowArray& whole, SourceTexts& views) {
  const auto [schema, array] = column_of(&whole_schema, &whole);
  const auto require = [&](bool holds, int64_t index) {
    if (!holds)
      raise_value_error("text " + std::to_string(views.size()) + " is null (row " + std::to_string(index) +
                        " of its chunk)");
  };
  views.reserve(views.size() + static_cast<size_t>(array->length));
  if (schema->dictionary == nullptr) {
    const TextAt text_at = reader_of(schema->format);
    for (int64_t i = 0; i < array->length; ++i) {
      require(!is_null(*array, array->offset + i), i);
      views.push_back(SourceText::of(text_at(*array, array->offset + i)));
    }
    return;
  }
  const TextAt text_at = reader_of(schema->dictionary->format);
  const ArrowArray& words = *array->dictionary;
  for (int64_t i = 0; i < array->length; ++i) {
    require(!is_null(*array, array->offset + i), i);
    const int64_t key = key_at(schema->format[0], *array, array->offset + i);
    if (key < 0 || key >= words.length) raise_value_error("Arrow column: a dictionary key out of range");
    require(!is_null(words, words.offset + key), i);
    views.push_back(SourceText::of(text_at(words, words.offset + key)));
  }
}

template <typename Handed>
Handed& in_capsule(nb::handle capsule, const char* name) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!pointer) throw nb::python_error();
  return *static_cast<Handed*>(pointer);
}

SourceText source_text(PyObject* text) {
  if (!PyUnicode_Check(text)) return SourceText::of(text_view(text));
#if PY_VERSION_HEX < 0x030C0000
  if (PyUnicode_READY(text) != 0) throw nb::python_error();
#endif
  using Form = SourceText::Form;
  const Form form = PyUnicode_IS_ASCII(text)                       ? Form::utf8
                    : PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND ? Form::latin1
                    : PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND ? Form::ucs2
                                                                   : Form::ucs4;
  return {PyUnicode_DATA(text), static_cast<size_t>(PyUnicode_GET_LENGTH(text)), form};
}

}  // namespace

struct Texts::Chunks {
  std::deque<Owned<ArrowArray>> arrays;
};

std::string_view text_view(nb::handle text) {
  if (PyBytes_Check(text.ptr()))
    return {PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))};
  if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a text must be str or bytes");
  Py_ssize_t byte_count = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &byte_count);
  if (!utf8) throw nb::python_error();
  return {utf8, static_cast<size_t>(byte_count)};
}

Texts::Texts(nb::handle texts) {
  if (PyUnicode_Check(texts.ptr()) || PyBytes_Check(texts.ptr()))
    throw nb::type_error("one text was given where many are expected; encode() takes one");
  if (nb::hasattr(texts, "__arrow_c_stream__")) {
    take_stream(texts);
  } else if (nb::hasattr(texts, "__arrow_c_array__")) {
    take_array(texts);
  } else if (nb::hasattr(texts, "__array_interface__") && nb::hasattr(texts, "tolist")) {
    if (nb::cast<int>(texts.attr("ndim")) != 1)
      throw nb::type_error("an array of texts must have one dimension");
    take_list(texts.attr("tolist")());
  } else {
    take_list(texts);
  }
}

Texts::~Texts() = default;

void Texts::take_list(nb::handle texts) {
  kept_ = nb::steal(PySequence_List(texts.ptr()));
  if (!kept_.ptr()) throw nb::python_error();
  const auto size = static_cast<size_t>(PyList_GET_SIZE(kept_.ptr()));
  const auto text_at = [&](size_t i) { return PyList_GET_ITEM(kept_.ptr(), static_cast<Py_ssize_t>(i)); };
  constexpr size_t kAhead = 16;  // Objects lie all over the memory, and one thread looks at all of them.
  views_.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    if (i + kAhead < size) __builtin_prefetch(text_at(i + kAhead));
    views_.push_back(source_text(text_at(i)));
  }
}

void Texts::expect_utf8() const {
  if (!PyList_Check(kept_.ptr())) return;
  for (const nb::handle text : nb::borrow<nb::list>(kept_)) text_view(text);
}

void Texts::take_array(nb::handle texts) {
  kept_ = texts.attr("__arrow_c_array__")();  // Two capsules, which release what they hold.
  add_column(in_capsule<ArrowSchema>(kept_[0], "arrow_schema"),
             in_capsule<ArrowArray>(kept_[1], "arrow_array"), views_);
}

void Texts::take_stream(nb::handle texts) {
  kept_ = texts.attr("__arrow_c_stream__")();
  chunks_ = std::make_unique<Chunks>();
  auto& stream = in_capsule<ArrowArrayStream>(kept_, "arrow_array_stream");
  const auto expect_fine = [&](int error) {
    if (error == 0) return;
    const char* const why = stream.get_last_error(&stream);
    raise_value_error(std::string("Arrow stream: ") + (why ? why : std::strerror(error)));
  };
  Owned<ArrowSchema> schema;
  expect_fine(stream.get_schema(&stream, &schema));
  while (true) {
    Owned<ArrowArray>& array = chunks_->arrays.emplace_back();
    expect_fine(stream.get_next(&stream, &array));
    if (array.release == nullptr) break;
    add_column(schema, array, views_);
  }
}

}  // namespace lmemo::python
