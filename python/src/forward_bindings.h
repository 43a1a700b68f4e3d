// What the files of the forward face share on the Python side.
//
// Methods that are called for every lookup are CPython methods, not nanobind's: the dispatch of the latter costs as much as the lookup.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <vector>

namespace lmemo::python {

void init_forward_cache(nanobind::module_& m);
void init_forward_stats(nanobind::module_& m);
void init_forward_trace(nanobind::module_& m);
void init_forward_flights(nanobind::module_& m);
void init_forward_values(nanobind::module_& m);
void init_forward_instrumentation(nanobind::module_& m);

// The names of a method's arguments, all of them required, given by place or by name.
class ArgumentNames {
 public:
  ArgumentNames(const char* function, std::initializer_list<const char*> names) : function_(function) {
    for (const char* name : names) names_.push_back(PyUnicode_InternFromString(name));
  }

  // Borrowed references. False with a TypeError.
  bool read(PyObject* const* arguments, Py_ssize_t count, PyObject* names, PyObject** given) const {
    const auto expected = static_cast<Py_ssize_t>(names_.size());
    if (names == nullptr && count == expected) [[likely]] {
      for (Py_ssize_t i = 0; i < expected; ++i) given[i] = arguments[i];
      return true;
    }
    return read_named(arguments, count, names, given);
  }

 private:
  bool read_named(PyObject* const* arguments, Py_ssize_t count, PyObject* names, PyObject** given) const;

  const char* const function_;
  std::vector<PyObject*> names_;
};

template <typename Class>
void add_method(Class& cls, PyMethodDef& method) {
  auto* const type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.attr(method.ml_name) = nanobind::steal(PyDescr_NewMethod(type, &method));
}

// What such a method is called on; nullptr with a RuntimeError if a subclass has not called __init__() of its base.
template <typename T>
T* ready(PyObject* self) {
  if (nanobind::inst_ready(self)) [[likely]]
    return nanobind::inst_ptr<T>(self);
  PyErr_Format(PyExc_RuntimeError, "%.200s: super().__init__() was not called", Py_TYPE(self)->tp_name);
  return nullptr;
}

// "maxsize must be positive; got N" if it is not.
uint64_t checked_maxsize(nanobind::handle maxsize);

}  // namespace lmemo::python
