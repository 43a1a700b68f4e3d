// What lmemo.activations is given: keys, tensors that were found, saving and loading, claims.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "base/claim_file.h"
#include "base/large_copy.h"
#include "bindings.h"
#include "errors.h"
#include "native_activations.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// Copies one tensor of those that were found.
void copy_tensor(const FoundTensors& found, size_t number, uint64_t address, const std::string& to,
                 uint64_t row_bytes, uint64_t row_stride) {
  const TensorType type = type_of(to);
  const TensorView& tensor = found.tensors.at(number);
  Status status;
  if (tensor.byte_count() >= kLongCopyBytes) {
    const nb::gil_scoped_release released;
    status = copy_elements(tensor, type, at_address(address), row_bytes, row_stride);
  } else {
    status = copy_elements(tensor, type, at_address(address), row_bytes, row_stride);
  }
  raise_if_failed(status);
}

// CPython's own method: nanobind's dispatch would be a tenth of all that loading a layer takes.
PyObject* load_layer(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  try {
    if (count != 3) throw nb::type_error("load_layer() takes model_name, prompt and layer");
    const long long layer = PyLong_AsLongLong(arguments[2]);
    if (layer == -1 && PyErr_Occurred()) return nullptr;
    return nb::inst_ptr<NativeActivations>(self)
        ->load_layer(arguments[0], arguments[1], layer)
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}
PyMethodDef kLoadLayer = {
    "load_layer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&load_layer)), METH_FASTCALL,
    "load_layer($self, model_name, prompt, layer)\n--\n\n"
    "A tensor (1, tokens, dim), or None."};

// From the first to behind the last element that is not zero, of a mask.
std::pair<uint64_t, uint64_t> kept_positions(const std::string& dtype, uint64_t address, uint64_t count) {
  const uint64_t element = bytes_per_element(type_of(dtype));
  const std::byte* const mask = at_address(address);
  const auto counts = [&](uint64_t place) {
    const std::byte* const first = mask + place * element;
    return std::any_of(first, first + element, [](std::byte byte) { return byte != std::byte{0}; });
  };
  uint64_t first = 0, end = count;
  while (first < end && !counts(first)) ++first;
  while (end > first && !counts(end - 1)) --end;
  return first == end ? std::pair<uint64_t, uint64_t>(0, 0) : std::pair(first, end);
}

void convert_floats(const std::string& from, uint64_t source, const std::string& to, uint64_t target,
                    uint64_t count) {
  TensorView view{
      type_of(from), {count}, false, Bytes(at_address(source), count * bytes_per_element(type_of(from)))};
  const TensorType type = type_of(to);
  Status status;
  {
    const nb::gil_scoped_release released;
    status = copy_elements(view, type, at_address(target));
  }
  raise_if_failed(status);
}

}  // namespace

void init_activations(nb::module_& m) {
  nb::class_<ActivationKeys>(m, "ActivationKeys", "The keys of one model's activations.")
      .def(
          "__init__",
          [](ActivationKeys* self, nb::handle fields) {
            new (self) ActivationKeys(value_or_raise(ActivationKeys::of(fields_of(fields, nb::dict()))));
          },
          "fields"_a, nb::sig("def __init__(self, fields: Mapping[str, FieldValue]) -> None"))
      .def(
          "key",
          [](const ActivationKeys& self, nb::handle prompt, const std::string& part,
             std::optional<int64_t> layer, const std::string& pooling, std::optional<std::string> stored) {
            std::string kept;
            return value_or_raise(self.key(
                ActivationKeys::prompt(prompt_bytes(prompt, kept)),
                {part_of(part), layer.value_or(0), pooling, stored ? type_of(*stored) : TensorType::none}));
          },
          "prompt"_a, "part"_a, "layer"_a = nb::none(), "pooling"_a = "", "stored"_a = nb::none(),
          nb::sig("def key(self, prompt: str, part: str, layer: int | None = None, pooling: str = '', "
                  "stored: str | None = None) -> Key"),
          "The key of one entry, for Store.explain and the like.")
      .def_prop_ro(
          "encoding",
          [](const ActivationKeys& self) { return bytes_to_python(bytes_of(self.model_encoding())); },
          nb::sig("def encoding(self) -> bytes"), "The model's fields as they stand in a key.");

  nb::class_<FoundTensors>(
      m, "FoundTensors", "Tensors that were found, where they lie. They stay valid while this object lives.")
      .def("__len__", [](const FoundTensors& self) { return self.tensors.size(); })
      .def(
          "dtype",
          [](const FoundTensors& self, size_t number) {
            return std::string(name_of(self.tensors.at(number).type));
          },
          "number"_a = 0, "The stored dtype, as torch calls it.")
      .def(
          "shape",
          [](const FoundTensors& self, size_t number) {
            return nb::tuple(nb::cast(self.tensors.at(number).shape));
          },
          "number"_a = 0, nb::sig("def shape(self, number: int = 0) -> tuple[int, ...]"))
      .def(
          "is_compressed",
          [](const FoundTensors& self, size_t number) { return self.tensors.at(number).is_compressed; },
          "number"_a = 0)
      .def(
          "hit", [](const FoundTensors& self, size_t number) { return self.hits.at(self.hit_of.at(number)); },
          "number"_a = 0, "The record that holds it: a read-only buffer.")
      .def(
          "offset",
          [](const FoundTensors& self, size_t number) {
            const TensorView& tensor = self.tensors.at(number);
            return tensor.stored.data() - self.hits.at(self.hit_of.at(number)).value().data();
          },
          "number"_a = 0, "Where its elements begin in the record.")
      .def("copy_to", &copy_tensor, "number"_a, "address"_a, "dtype"_a, "row_bytes"_a = 0, "row_stride"_a = 0)
      .def(
          "copy_layers_to",
          [](const FoundTensors& self, uint64_t address, const std::string& dtype, uint64_t row_stride) {
            copy_layers(self, at_address(address), type_of(dtype), row_stride);
          },
          "address"_a, "dtype"_a, "row_stride"_a);

  nb::class_<WantedLayers>(m, "WantedLayers", "What NativeActivations.load_all() loads of every prompt.")
      .def(
          "__init__",
          [](WantedLayers* self, const std::string& part, const std::string& pooling,
             std::vector<int64_t> layers, const std::vector<std::string>& order,
             const std::optional<std::string>& dtype) {
            WantedLayers wanted{
                part_of(part), pooling, std::move(layers), {}, dtype ? type_of(*dtype) : TensorType::none};
            for (const std::string& name : order) wanted.order.push_back(type_of(name));
            new (self) WantedLayers(std::move(wanted));
          },
          "part"_a, "pooling"_a, "layers"_a, "order"_a, "dtype"_a.none(),
          "`order`: the stored dtypes that do; the first that has all layers is taken. `dtype` is that of "
          "the result; None: the one in which all are stored.");

  nb::class_<NativeActivations> native(m, "NativeActivations", "Tensors in and out of a store.");
  native.def(nb::init<nb::object>(), "store"_a, nb::sig("def __init__(self, store: StoreBase) -> None"))
      .def("use_torch", &NativeActivations::use_torch, "empty"_a, "from_dlpack"_a, "types"_a, "plain_keys"_a,
           "make_keys"_a,
           nb::sig("def use_torch(self, empty: Callable[..., typing.Any], from_dlpack: "
                   "Callable[[typing.Any], typing.Any], types: dict[str, typing.Any], plain_keys: dict[str, "
                   "ActivationKeys], make_keys: Callable[[str], ActivationKeys]) -> None"))
      .def("prefer", &NativeActivations::prefer, "dtype"_a.none())
      .def("put_rows", &NativeActivations::put_rows, "keys"_a, "prompt"_a, "part"_a, "pooling"_a, "layers"_a,
           "columns"_a, "stored"_a, "compress"_a, "source"_a, "address"_a, "rows"_a, "dim"_a, "row_stride"_a,
           "mask"_a = nb::none())
      .def("put_tensors", &NativeActivations::put_tensors, "keys"_a, "prompt"_a, "part"_a, "stored"_a.none(),
           "compress"_a, "tensors"_a)
      .def("find_layers", &NativeActivations::find_layers, "keys"_a, "prompt"_a, "part"_a, "pooling"_a,
           "layers"_a, "order"_a)
      .def("find_record", &NativeActivations::find_record, "keys"_a, "prompt"_a, "part"_a, "order"_a)
      .def("find_key", &NativeActivations::find_key, "key"_a)
      .def("missing_layers", &NativeActivations::missing_layers, "keys"_a, "prompt"_a, "part"_a, "pooling"_a,
           "layers"_a, "order"_a)
      .def(
          "load_layer_of",
          [](NativeActivations& self, const ActivationKeys& keys, nb::handle prompt, int64_t layer) {
            return self.load_layer(keys, prompt, layer);
          },
          "keys"_a, "prompt"_a, "layer"_a,
          nb::sig("def load_layer_of(self, keys: ActivationKeys, prompt: str, layer: int) -> typing.Any"))
      .def("load_all", &NativeActivations::load_all, "keys"_a, "prompts"_a, "wanted"_a,
           nb::sig("def load_all(self, keys: ActivationKeys, prompts: list[str], wanted: WantedLayers) -> "
                   "typing.Any"))
      .def("load_last_rows", &NativeActivations::load_last_rows, "keys"_a, "prompts"_a, "layer"_a, "order"_a,
           nb::sig("def load_last_rows(self, keys: ActivationKeys, prompts: list[str], layer: int, order: "
                   "collections.abc.Sequence[str]) -> typing.Any"))
      .def("side_by_side", &NativeActivations::side_by_side, "found"_a,
           nb::sig("def side_by_side(self, found: FoundTensors) -> typing.Any"))
      .def("models", &NativeActivations::models, nb::sig("def models(self) -> list[dict[str, typing.Any]]"))
      .def("discover", &NativeActivations::discover, "keys"_a, "prompt"_a,
           nb::sig("def discover(self, keys: ActivationKeys, prompt: str) -> typing.Any"))
      .def("refresh", &NativeActivations::refresh)
      .def("stored_bytes", &NativeActivations::stored_bytes)
      .def("evict", &NativeActivations::evict, "target_bytes"_a);
  native.attr("load_layer") =
      nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(native.ptr()), &kLoadLayer));

  nb::class_<ClaimFile>(m, "ClaimFile",
                        "Who works on what, between processes; a dead owner never blocks anybody.")
      .def(
          "__init__",
          [](ClaimFile* self, nb::handle path) {
            new (self) ClaimFile(value_or_raise(ClaimFile::open(path_of(path))));
          },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def(
          "try_claim", [](ClaimFile& claims, uint64_t number) { return claims.try_claim(number); },
          "number"_a)
      .def("release", [](ClaimFile& claims, uint64_t number) { claims.release(number); }, "number"_a);

  m.def("kept_positions", &kept_positions, "dtype"_a, "address"_a, "count"_a,
        "From the first to behind the last element of a mask that counts.");
  m.def(
      "expect_large",
      [](uint64_t address, uint64_t byte_count) { expect_large(at_address(address), byte_count); },
      "address"_a, "byte_count"_a, "Asks for pages of 2 MB for new memory that is about to be written to.");
  m.def("convert_floats", &convert_floats, "from_dtype"_a, "source"_a, "to_dtype"_a, "target"_a, "count"_a,
        "Converts so many floats between float32, float16 and bfloat16, from one address to another.");
}

}  // namespace lmemo::python
