// lmemo.Key: the identity of an entry, from Python values.

#include "lmemo/key.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "errors.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// Takes its arguments by hand, so that a field may have any name, "kind" and "fields" included.
Key key_of(const nb::args& positional, const nb::kwargs& named) {
  if (positional.size() < 1 || positional.size() > 2 || !PyUnicode_Check(nb::handle(positional[0]).ptr()))
    throw nb::type_error("Key.of(kind, fields=None, /, **named): kind must be given first, as str");
  const nb::object mapping = positional.size() == 2 ? nb::object(positional[1]) : nb::none();
  return value_or_raise(Key::of(utf8_of(positional[0]), fields_of(mapping, named)));
}

Key key_from_encoding(nb::handle encoding) {
  return value_or_raise(Key::from_encoding(BufferView(encoding).bytes()));
}

LongValue long_value(bool is_text, uint64_t byte_count, const nb::bytes& sha256) {
  LongValue value{is_text, byte_count, {}};
  if (byte_count <= kMaxInlineValueBytes || sha256.size() != sizeof value.sha256.bytes)
    throw nb::value_error("LongValue: expected more than 256 bytes and a digest of 32 bytes");
  std::memcpy(value.sha256.bytes.data(), sha256.c_str(), sizeof value.sha256.bytes);
  return value;
}

nb::object repr_of_key(const Key& key) {
  return nb::str("Key.of({!r}, {!r})").format(text_to_python(key.kind()), fields_to_python(key));
}

nb::object repr_of_long_value(const LongValue& value) {
  return nb::str("LongValue(is_text={!r}, byte_count={!r}, sha256={!r})")
      .format(nb::bool_(value.is_text), value.byte_count, bytes_to_python(value.sha256.bytes));
}

}  // namespace

void init_keys(nb::module_& m) {
  nb::class_<LongValue>(
      m, "LongValue",
      "What stands for a text or blob of more than 256 bytes in the fields of a key: its length and "
      "SHA-256. Given to Key.of it makes the same key as the text or blob itself.")
      .def(
          "__init__",
          [](LongValue* self, bool is_text, uint64_t byte_count, const nb::bytes& sha256) {
            new (self) LongValue(long_value(is_text, byte_count, sha256));
          },
          "is_text"_a, "byte_count"_a, "sha256"_a)
      .def_ro("is_text", &LongValue::is_text, "True for a str, False for bytes.")
      .def_ro("byte_count", &LongValue::byte_count, "Length in bytes; of a text, in UTF-8.")
      .def_prop_ro(
          "sha256", [](const LongValue& self) { return nb::bytes(self.sha256.bytes.data(), 32); },
          "SHA-256 of the bytes.")
      .def(
          "__eq__", [](const LongValue& self, const LongValue& other) { return self == other; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const LongValue& self) { return std::hash<Digest>()(self.sha256) >> 1; })
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(self.type(), nb::make_tuple(self.attr("is_text"), self.attr("byte_count"),
                                                              self.attr("sha256")));
          },
          nb::sig("def __reduce__(self) -> tuple[type[LongValue], tuple[bool, int, bytes]]"))
      .def("__repr__", &repr_of_long_value, nb::sig("def __repr__(self) -> str"));

  nb::class_<Key>(
      m, "Key",
      "The identity of an entry: a kind and named, typed fields.\n\n"
      "    Key.of(\"tokens\", section=text, tokenizer=\"gpt2@a1b2\")\n\n"
      "Two keys are equal exactly if kind, names, types and values are equal: 1, 1.0, True and \"1\" are "
      "four different values. The digest is the same in every process, on every machine and in every "
      "version of Python.")
      .def(
          "__init__", [](Key* self, nb::handle encoding) { new (self) Key(key_from_encoding(encoding)); },
          nb::arg("encoding").noconvert(), nb::sig("def __init__(self, encoding: Buffer, /) -> None"),
          "Reads an encoding back, as Key.from_encoding does. To make a key, use Key.of.")
      .def_static("of", &key_of,
                  nb::sig("def of(kind: str, fields: Mapping[str, FieldInput] | None = None, /, "
                          "**named: FieldInput) -> Key"),
                  "Makes a key. Fields are given by name, or in a mapping if a name is no identifier; their "
                  "order does "
                  "not matter.\n\n"
                  "A value is None, bool, int (64 bits), float, str or bytes, or a numpy scalar of such a "
                  "type. Every "
                  "str can be part of a key, lone surrogates included (they are encoded as by "
                  "\"surrogatepass\"). Of a "
                  "text or blob of more than 256 bytes length and SHA-256 are kept; it still counts in full.")
      .def_static(
          "from_encoding", &key_from_encoding, nb::arg("encoding"),
          nb::sig("def from_encoding(encoding: Buffer, /) -> Key"),
          "Reads back what `encoding` gave. Raises lmemo.Corruption if the bytes are nothing of the kind.")
      .def_prop_ro(
          "digest", [](const Key& self) { return nb::bytes(self.digest().bytes.data(), 32); },
          "The 32 bytes under which the entry is found.")
      .def_prop_ro(
          "hex", [](const Key& self) { return self.digest().hex(); }, "The digest as 64 hex digits.")
      .def_prop_ro(
          "kind", [](const Key& self) { return text_to_python(self.kind()); },
          nb::sig("def kind(self) -> str"), "The namespace of the entry.")
      .def_prop_ro(
          "fields", &fields_to_python, nb::sig("def fields(self) -> dict[str, FieldValue]"),
          "The fields by name, in order of their names. Long texts and blobs come back as LongValue.")
      .def_prop_ro(
          "encoding", [](const Key& self) { return bytes_to_python(self.encoding()); },
          nb::sig("def encoding(self) -> bytes"),
          "The canonical encoding: what is hashed, and what is stored beside the entry.")
      .def(
          "__eq__", [](const Key& self, const Key& other) { return self == other; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Key& self) { return std::hash<Digest>()(self.digest()) >> 1; })
      .def(
          "__reduce__",
          [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("encoding"))); },
          nb::sig("def __reduce__(self) -> tuple[type[Key], tuple[bytes]]"))
      .def("__repr__", &repr_of_key, nb::sig("def __repr__(self) -> str"));
}

}  // namespace lmemo::python
