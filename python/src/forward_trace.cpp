#include "forward_trace.h"

#include <nanobind/stl/string.h>

#include <cmath>

#include "errors.h"
#include "forward_bindings.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {

namespace {

// Of a value that cannot be shown, its type is: that costs a line its text, and not the caller his lookup.
std::string text_or_type(PyObject* text, nb::handle value) {
  if (text != nullptr) return utf8_of(nb::steal(text));
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
  PyErr_Clear();
  return std::string("<") + Py_TYPE(value.ptr())->tp_name + ">";
}

}  // namespace

std::string json_of(nb::handle value) {
  if (value.is_none()) return "null";
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True ? "true" : "false";
  if (PyUnicode_Check(value.ptr())) return json_quoted(utf8_of(value));
  const std::string text = text_or_type(PyObject_Str(value.ptr()), value);
  const bool is_number = PyLong_CheckExact(value.ptr()) ||
                         (PyFloat_CheckExact(value.ptr()) && std::isfinite(PyFloat_AS_DOUBLE(value.ptr())));
  return is_number && !text.starts_with('<') ? text : json_quoted(text);
}

std::string trace_label_of(const KeyView& key) {
  const nb::handle prompt(key.part[2]);
  const std::string text =
      PyUnicode_Check(prompt.ptr()) ? utf8_of(prompt) : text_or_type(PyObject_Repr(prompt.ptr()), prompt);
  return trace_label(json_of(key.part[1]), json_quoted(trace_prompt_hash(text)), json_of(key.part[3]),
                     json_of(key.part[0]));
}

TraceObject::TraceObject(nb::handle path) : path_(nb::none()) {
  if (path.is_none()) return;
  const std::filesystem::path file = path_of(path);
  writer_ = value_or_raise(TraceWriter::open(file));
  path_ = path_to_python(file);
}

TraceObject::~TraceObject() {
  if (writer_ != nullptr) writer_->close();
}

void TraceObject::log_complaint() const {
  const std::string complaint = writer_->take_complaint();
  if (complaint.empty()) return;
  nb::module_::import_("logging").attr("getLogger")("lmemo").attr("warning")("%s", text_to_python(complaint));
}

void TraceObject::close() {
  if (writer_ == nullptr) return;
  {
    const nb::gil_scoped_release released;
    writer_->close();
  }
  log_complaint();
}

void TraceObject::flush() {
  if (writer_ == nullptr) return;
  {
    const nb::gil_scoped_release released;
    writer_->flush();
  }
  log_complaint();
}

namespace {

double number_of(nb::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return number;
}

bool is_true(nb::handle value) {
  const int answer = PyObject_IsTrue(value.ptr());
  if (answer < 0) throw nb::python_error();
  return answer == 1;
}

// An event made by somebody else: anything with these attributes.
void write_event(TraceObject& self, nb::handle event) {
  if (self.writer() == nullptr) return;
  const std::string label = trace_label(json_of(event.attr("view_id")), json_of(event.attr("prompt_hash")),
                                        json_of(event.attr("top_k")), json_of(event.attr("op")));
  const std::string probe = json_of(event.attr("probe"));
  TraceEvent line{.label = label, .probe = probe};
  line.time_seconds = number_of(event.attr("ts"));
  line.wall_ms = number_of(event.attr("wall_ms"));
  line.flags = TraceEvent::has_time;
  if (is_true(event.attr("hit"))) line.flags |= TraceEvent::hit;
  self.writer()->write(line);
}

}  // namespace

void init_forward_trace(nb::module_& m) {
  nb::class_<TraceObject>(
      m, "TraceWriter", nb::is_weak_referenceable(),
      "One JSON object a line for every lookup: ts, probe, view_id, prompt_hash, top_k, op, wall_ms, hit.\n\n"
      "None for the path: nothing is done. Else the parents are made and lines are appended, by a "
      "background thread, whole lines in batches, at least every second, at close() and at exit.")
      .def(
          "__init__", [](TraceObject* self, nb::handle path) { new (self) TraceObject(path); },
          "path"_a.none() = nb::none(),
          nb::sig("def __init__(self, path: str | os.PathLike[str] | None = None) -> None"))
      .def("write", &write_event, "event"_a.none(), nb::sig("def write(self, event: Any) -> None"),
           "Adds a line from an object with the members as attributes. After close() it is ignored.")
      .def("flush", &TraceObject::flush, "Returns when every line written before is in the file.")
      .def("close", &TraceObject::close, "Flushes and lets go of the file. A second call does nothing.")
      .def_prop_ro("path", &TraceObject::path, nb::sig("def path(self) -> pathlib.Path | None"),
                   "The file, or None.")
      .def_prop_ro(
          "lines", [](const TraceObject& self) { return self.writer() ? self.writer()->lines() : 0; },
          "Lines in the file so far that came from this writer.")
      .def_prop_ro(
          "lost_lines",
          [](const TraceObject& self) { return self.writer() ? self.writer()->lost_lines() : 0; },
          "Lines that could not be written (a full disk); the cause is logged once.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](TraceObject& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  m.def(
      "close_all_traces",
      [] {
        const nb::gil_scoped_release released;
        TraceWriter::close_all();
      },
      "Writes what is queued in any open TraceWriter, and closes it.");
}

}  // namespace lmemo::python
