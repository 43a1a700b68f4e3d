// BackendInstrumentation: what sits between a scoring backend and its callers.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "forward_cache.h"
#include "forward_flights.h"
#include "forward_persistence.h"
#include "forward_stats.h"
#include "forward_trace.h"
#include "python_mutex.h"

namespace lmemo::python {

class Instrumentation {
 public:
  Instrumentation(nanobind::object cache, nanobind::object trace, std::unique_ptr<Persistence> persistence);

  const nanobind::object& cache_object() const { return cache_object_; }
  nanobind::object trace_object() const;
  // From here on lookups are written there; who is in the middle of one may still use the old one.
  void set_trace(nanobind::object trace);
  const nanobind::object& stats_object() const { return stats_object_; }
  const Persistence* persistence() const { return persistence_.get(); }
  nanobind::object current_probe() const;
  void set_current_probe(nanobind::object name);
  void close();

  // Borrowed parts in, a new reference out; nullptr with a Python exception.
  PyObject* cached(PyObject* op, PyObject* view_id, PyObject* prompt, PyObject* top_k, PyObject* compute);
  PyObject* cached_batch(PyObject* op, PyObject* view_id, PyObject* prompts, PyObject* top_k,
                         PyObject* compute);

  // Keeps a result that was computed elsewhere. Counts no lookup.
  void put(nanobind::handle op, nanobind::handle view_id, nanobind::handle prompt, nanobind::handle top_k,
           nanobind::handle value);

  // The steps of an asynchronous call, which Python puts together (lmemo/forward.py). Roles are those of FlightTable.
  nanobind::tuple begin_task(nanobind::handle op, nanobind::handle view_id, nanobind::handle prompt,
                             nanobind::handle top_k, nanobind::handle batch);
  nanobind::object finish_task(nanobind::handle flight, nanobind::handle value, double wall_seconds);
  void fail_task(nanobind::handle flight, nanobind::handle error, double wall_seconds);
  void call_when_done(nanobind::handle flight, nanobind::handle callback);
  nanobind::tuple outcome(nanobind::handle flight, nanobind::handle wait_number, double wall_seconds);
  void leave(uint64_t wait_number) { flights_.leave(wait_number); }
  void note_batch(uint64_t prompts) { stats_->add_batch(prompts); }

  int traverse(visitproc visit, void* arg);

 private:
  struct Batch;

  PyObject* cached_miss(const KeyView& key, PyObject* compute, uint64_t start_ticks);
  PyObject* compute_alone(const nanobind::object& flight, PyObject* compute);
  PyObject* wait_for(const nanobind::object& flight, uint64_t wait_number, uint64_t start_ticks,
                     bool& is_abandoned);

  // Looks in the store. A value found there is put into the cache.
  nanobind::object find_stored(const KeyView& key);
  // Keeps a result for others and ends its flight. Returns what the caller gets.
  nanobind::object keep(const nanobind::object& flight, nanobind::handle value);

  void batch_begin(Batch& batch, size_t index);
  void batch_compute(Batch& batch);
  void batch_wait(Batch& batch);

  bool is_tracing() const { return trace_.load(std::memory_order_relaxed) != nullptr; }
  std::string label_for(const KeyView& key) const {
    return is_tracing() ? trace_label_of(key) : std::string();
  }
  // An empty label is made from the key: the entry may be older than the trace.
  void trace(const KeyView& key, std::string_view label, uint64_t end_ticks, uint64_t wall_ticks,
             unsigned flags, std::string_view error = {}) const;
  void note_hit(const KeyView& key, std::string_view label, uint64_t start_ticks, unsigned flags = 0);
  void note_miss(const Flight& flight, uint64_t wall_ticks);
  void note_failure(const Flight& flight, nanobind::handle error, uint64_t wall_ticks);

  nanobind::object cache_object_, stats_object_;
  ForwardCache* const cache_;
  BackendStats* const stats_;
  const std::unique_ptr<Persistence> persistence_;  // nullptr: in memory only.
  FlightTable flights_;
  mutable PythonMutex trace_mutex_;  // Guards everything below. No Python code runs under it.
  std::atomic<TraceWriter*> trace_;  // nullptr: not tracing.
  nanobind::object trace_object_;
  nanobind::object probe_;
  std::string probe_text_;  // As JSON.
};

}  // namespace lmemo::python
