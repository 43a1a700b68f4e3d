#include "errors.h"

#include <nanobind/nanobind.h>

#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

const char* class_name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "InvalidArgument";
    case ErrorCode::io_error: return "IoError";
    case ErrorCode::corruption: return "Corruption";
    case ErrorCode::incompatible: return "Incompatible";
    case ErrorCode::busy: return "Busy";
    case ErrorCode::no_space: return "NoSpace";
    case ErrorCode::interrupted: break;
  }
  return "Error";
}

}  // namespace

void raise_error(const Error& error) {
  if (error.code == ErrorCode::interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } else {
    const nb::object type = nb::module_::import_("lmemo._errors").attr(class_name_of(error.code));
    PyErr_SetObject(type.ptr(), text_to_python(error.message).ptr());
  }
  throw nb::python_error();
}

Error error_of(const nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) return {ErrorCode::interrupted, "interrupted"};
  const std::string message = nb::str(error.value()).c_str();
  if (error.matches(PyExc_OSError)) return {ErrorCode::io_error, message};
  if (error.matches(PyExc_ValueError) || error.matches(PyExc_RuntimeError))
    return {ErrorCode::incompatible, message};
  return {ErrorCode::incompatible, nb::cast<std::string>(error.type().attr("__name__")) + ": " + message};
}

}  // namespace lmemo::python
