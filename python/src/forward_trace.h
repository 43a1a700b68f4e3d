// TraceWriter as Python holds it: without a path it does nothing at all.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "faces/forward/trace_writer.h"
#include "forward_key.h"

namespace lmemo::python {

class TraceObject {
 public:
  explicit TraceObject(nanobind::handle path);
  ~TraceObject();

  TraceWriter* writer() const { return writer_.get(); }  // None: not tracing.
  nanobind::object path() const { return path_; }
  void close();
  void flush();

 private:
  void log_complaint() const;

  std::unique_ptr<TraceWriter> writer_;
  nanobind::object path_;
};

// A Python value as JSON: null, true, 256, 0.5, "text"; what JSON does not know appears as its str().
std::string json_of(nanobind::handle value);
// What a line says of one call. Needs four parts.
std::string trace_label_of(const KeyView& key);

}  // namespace lmemo::python
