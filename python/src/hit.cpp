// lmemo.Hit: a found entry as a read-only buffer over the mapped segment. No copy is made here or in Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "base/units.h"
#include "bindings.h"
#include "lmemo/store.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// The view holds a reference to the Hit, and the Hit holds the mapping: both outlive the store.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static constexpr std::byte kNothing{};
  const Bytes value = nb::inst_ptr<Hit>(self)->value();
  const std::byte* data = value.empty() ? &kNothing : value.data();
  return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(data), static_cast<Py_ssize_t>(value.size()),
                           /*readonly=*/1, flags);
}

// The one slot that nanobind does not offer. A method called __buffer__ would do from Python 3.12 on, slowly.
PyType_Slot kHitSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

// As with memoryview: equal to every bytes-like object with the same bytes. Without this, `hit == b"…"` would
// quietly be False.
nb::object equals(const Hit& self, nb::handle other) {
  if (!PyObject_CheckBuffer(other.ptr())) return nb::borrow(Py_NotImplemented);
  const BufferView view(other);
  return nb::bool_(std::ranges::equal(self.value(), view.bytes()));
}

std::string repr_of_hit(const Hit& self) {
  return "<lmemo.Hit of " + format_count(self.value().size()) + " bytes, written " +
         format_time_utc(self.written_ns()) + ">";
}

}  // namespace

void init_hits(nb::module_& m) {
  nb::class_<Hit> hit(
      m, "Hit", nb::type_slots(kHitSlots), nb::pooled(256), nb::is_final(),
      "A found entry: a read-only view of its bytes, without a copy.\n\n"
      "    numpy.frombuffer(hit, dtype=numpy.int32)    memoryview(hit)    bytes(hit)\n\n"
      "It stays valid while it, or an array made from it, lives: also when the store is closed, the "
      "entry is evicted or the directory is deleted.");
  hit.def("__len__", [](const Hit& self) { return self.value().size(); })
      .def(
          "__bool__", [](const Hit&) { return true; }, "Always True: also an empty value was found.")
      .def("__eq__", &equals, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"),
           "True for every bytes-like object with the same bytes.")
      .def_prop_ro(
          "written", [](const Hit& self) { return time_to_python(self.written_ns()); },
          nb::sig("def written(self) -> datetime.datetime"), "When it was put (UTC).")
      .def_prop_ro("written_ns", &Hit::written_ns,
                   "When it was put: nanoseconds since 1970, never twice the same within a process.")
      .def("__repr__", &repr_of_hit);
  hit.attr("__hash__") = nb::none();  // Equal to bytes, but not usable in their place as a dict key.
}

}  // namespace lmemo::python
