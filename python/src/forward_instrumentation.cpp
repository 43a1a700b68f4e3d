#include "forward_instrumentation.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "base/tick_clock.h"
#include "bindings.h"
#include "forward_bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

nb::object or_raise(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

void raise(nb::handle error) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

// Whatever was thrown, as what Python raises.
nb::python_error as_python_error(std::exception& thrown) {
  if (auto* const error = dynamic_cast<nb::python_error*>(&thrown))
    error->restore();
  else
    PyErr_SetString(dynamic_cast<std::bad_alloc*>(&thrown) ? PyExc_MemoryError : PyExc_RuntimeError,
                    thrown.what());
  return nb::python_error();
}

// One for each miss, as a tuple.
nb::object checked_results(nb::handle given, Py_ssize_t count, nb::handle op, nb::handle view_id) {
  // Iterating over these would give what nobody meant: the keys, or another order.
  if (PyDict_Check(given.ptr()) || PyAnySet_Check(given.ptr())) {
    PyErr_Format(
        PyExc_TypeError,
        "backend bug: compute_misses returned a %.80s; it must return a list with one result for each index "
        "it is given, in their order (%.80R of %.80R); nothing was stored",
        Py_TYPE(given.ptr())->tp_name, op.ptr(), view_id.ptr());
    throw nb::python_error();
  }
  nb::object results = or_raise(PySequence_Tuple(given.ptr()));
  if (PyTuple_GET_SIZE(results.ptr()) != count) {
    PyErr_Format(
        PyExc_RuntimeError,
        "backend bug: compute_misses returned %zd values for %zd misses; it must return one for each index "
        "it is given, in their order (%.80R of %.80R); nothing was stored",
        PyTuple_GET_SIZE(results.ptr()), count, op.ptr(), view_id.ptr());
    throw nb::python_error();
  }
  return results;
}

uint64_t ticks_of(double seconds) {
  return static_cast<uint64_t>(std::max(0.0, seconds) / seconds_per_tick());
}

}  // namespace

Instrumentation::Instrumentation(nb::object cache, nb::object trace, std::unique_ptr<Persistence> persistence)
    : cache_object_(std::move(cache)),
      stats_object_(nb::cast(new BackendStats, nb::rv_policy::take_ownership)),
      cache_(nb::inst_ptr<ForwardCache>(cache_object_)),
      stats_(nb::inst_ptr<BackendStats>(stats_object_)),
      persistence_(std::move(persistence)),
      trace_(nb::inst_ptr<TraceObject>(trace)->writer()),
      trace_object_(std::move(trace)),
      probe_(nb::none()) {}

nb::object Instrumentation::trace_object() const {
  const PythonLock lock(trace_mutex_);
  return trace_object_;
}

void Instrumentation::set_trace(nb::object trace) {
  const PythonLock lock(trace_mutex_);
  trace_ = nb::inst_ptr<TraceObject>(trace)->writer();
  std::swap(trace_object_, trace);  // The old one goes with the argument, after the lock.
}

nb::object Instrumentation::current_probe() const {
  const PythonLock lock(trace_mutex_);
  return probe_;
}

void Instrumentation::set_current_probe(nb::object name) {
  std::string text = name.is_none() ? std::string() : json_of(name);
  nb::object trace;
  {
    const PythonLock lock(trace_mutex_);
    if (text != probe_text_) trace = trace_object_;
    std::swap(probe_, name);
    std::swap(probe_text_, text);
  }
  if (trace.is_valid()) nb::inst_ptr<TraceObject>(trace)->flush();
}

void Instrumentation::close() {
  const nb::object trace = trace_object();
  nb::inst_ptr<TraceObject>(trace)->close();
  if (persistence_ != nullptr) persistence_->flush();
}

// ------------------------------------------------------------------------------------------------ what is noted

void Instrumentation::trace(const KeyView& key, std::string_view label, uint64_t end_ticks,
                            uint64_t wall_ticks, unsigned flags, std::string_view error) const {
  if (!is_tracing()) return;
  const std::string made = label.empty() ? trace_label_of(key) : std::string();
  const PythonLock lock(trace_mutex_);
  if (TraceWriter* const writer = trace_)
    writer->write({.label = label.empty() ? made : label,
                   .probe = probe_text_,
                   .error = error,
                   .end_ticks = end_ticks,
                   .wall_ticks = wall_ticks,
                   .flags = flags});
}

void Instrumentation::note_hit(const KeyView& key, std::string_view label, uint64_t start_ticks,
                               unsigned flags) {
  const uint64_t wall_ticks = ticks_since(start_ticks);
  stats_->cache_hits.add();
  stats_->scoring_ticks.add(wall_ticks);
  if ((flags & TraceEvent::waited) != 0) stats_->shared.add();
  trace(key, label, start_ticks + wall_ticks, wall_ticks, TraceEvent::hit | flags);
}

void Instrumentation::note_miss(const Flight& flight, uint64_t wall_ticks) {
  stats_->cache_misses.add();
  stats_->forward_passes.add();
  stats_->scoring_ticks.add(wall_ticks);
  if (is_tracing()) trace(flight.key.view(), flight.label, ticks_now(), wall_ticks, TraceEvent::miss);
}

void Instrumentation::note_failure(const Flight& flight, nb::handle error, uint64_t wall_ticks) {
  stats_->failures.add();
  stats_->scoring_ticks.add(wall_ticks);
  if (!is_tracing()) return;
  trace(flight.key.view(), flight.label, ticks_now(), wall_ticks, TraceEvent::miss,
        json_quoted(Py_TYPE(error.ptr())->tp_name));
}

// ------------------------------------------------------------------------------------------------- one prompt

nb::object Instrumentation::find_stored(const KeyView& key) {
  if (persistence_ == nullptr) return {};
  nb::object value;
  switch (persistence_->find(key, value)) {
    case Persistence::Found::no: return {};
    case Persistence::Found::unreadable: stats_->unreadable.add(); return {};
    case Persistence::Found::yes: break;
  }
  if (!cache_->put(key, value.ptr(), ticks_now(), label_for(key))) throw nb::python_error();
  stats_->store_hits.add();
  return value;
}

nb::object Instrumentation::keep(const nb::object& flight, nb::handle value) {
  const Flight& computed = flight_of(flight);
  const KeyView key = computed.key.view();
  nb::object kept = nb::borrow(value);
  if (persistence_ != nullptr) (persistence_->put(key, kept) ? stats_->stored : stats_->memory_only).add();
  if (!cache_->put(key, kept.ptr(), ticks_now(), computed.label)) throw nb::python_error();
  flights_.finish(flight_of(flight), kept.ptr());
  return kept;
}

PyObject* Instrumentation::cached(PyObject* op, PyObject* view_id, PyObject* prompt, PyObject* top_k,
                                  PyObject* compute) {
  const uint64_t start_ticks = ticks_now();
  KeyView key;
  if (!KeyView::of_call(op, view_id, prompt, top_k, key)) return nullptr;
  if (!is_tracing()) [[likely]] {
    if (PyObject* value = cache_->find(key, start_ticks)) [[likely]] {
      stats_->cache_hits.add();
      stats_->scoring_ticks.add(ticks_since(start_ticks));
      return value;
    }
  } else {
    bool is_traced = false;
    const auto trace_hit = [&](const std::string& label) {
      if (label.empty()) return;
      is_traced = true;
      note_hit(key, label, start_ticks);
    };
    if (PyObject* value = cache_->find(key, start_ticks, trace_hit)) {
      const nb::object owned = nb::steal(value);
      if (!is_traced) note_hit(key, {}, start_ticks);  // Somebody put it there by hand.
      return Py_NewRef(value);
    }
  }
  if (PyErr_Occurred()) return nullptr;
  return cached_miss(key, compute, start_ticks);
}

PyObject* Instrumentation::cached_miss(const KeyView& key, PyObject* compute, uint64_t start_ticks) {
  // The caller's references may go while others run.
  const OwnedKey owner(key);
  if (nb::object value = find_stored(key); value.is_valid()) {
    note_hit(key, {}, start_ticks);
    return value.release().ptr();
  }
  while (true) {
    FlightTable::Begun begun = flights_.begin(key, *cache_, nullptr, false);
    switch (begun.role) {
      case FlightTable::Role::hit: note_hit(key, {}, start_ticks); return begun.value.release().ptr();
      case FlightTable::Role::lead:
      case FlightTable::Role::solo:
      case FlightTable::Role::mine: return compute_alone(begun.flight, compute);
      case FlightTable::Role::wait: {
        bool is_abandoned = false;
        PyObject* value = wait_for(begun.flight, begun.wait_number, start_ticks, is_abandoned);
        if (!is_abandoned) return value;
      }
    }
  }
}

PyObject* Instrumentation::compute_alone(const nb::object& flight, PyObject* compute) {
  Flight& under_way = flight_of(flight);
  const uint64_t start_ticks = ticks_now();
  try {
    under_way.label = label_for(under_way.key.view());
    nb::object value;
    {
      const InsideFlights inside({flight});
      value = or_raise(PyObject_CallNoArgs(compute));
    }
    const uint64_t wall_ticks = ticks_since(start_ticks);
    nb::object kept = keep(flight, value);
    note_miss(under_way, wall_ticks);
    return kept.release().ptr();
  } catch (std::exception& thrown) {
    nb::python_error error = as_python_error(thrown);
    const uint64_t wall_ticks = ticks_since(start_ticks);
    flights_.fail(under_way, error.value().ptr());
    note_failure(under_way, error.value(), wall_ticks);
    error.restore();
    return nullptr;
  }
}

PyObject* Instrumentation::wait_for(const nb::object& flight, uint64_t wait_number, uint64_t start_ticks,
                                    bool& is_abandoned) {
  Flight& other = flight_of(flight);
  const bool has_ended = flights_.wait(other);
  flights_.leave(wait_number);
  if (!has_ended) return nullptr;
  switch (other.state) {
    case Flight::State::done:
      note_hit(other.key.view(), other.label, start_ticks, TraceEvent::waited);
      return Py_NewRef(other.value);
    case Flight::State::failed: raise(other.error); return nullptr;
    default: is_abandoned = true; return nullptr;
  }
}

// ---------------------------------------------------------------------------------------------------- a batch

struct Instrumentation::Batch {
  PyObject* const op;
  PyObject* const view_id;
  PyObject* const top_k;
  PyObject* const compute;
  const nb::object prompts;  // A tuple of our own.
  const nb::object results;  // A list.
  const uint64_t start_ticks = ticks_now();

  struct Lead {
    size_t index;
    nb::object flight;
  };
  struct Other {
    size_t index;
    nb::object flight;
    uint64_t wait_number;  // 0: a duplicate within the batch.
  };
  std::vector<Lead> leads;
  std::vector<Other> others;
  std::vector<nb::object> solos;  // Those of the leads that only this batch knows of.

  KeyView key_of(size_t index) const {
    KeyView key;
    PyObject* const prompt = PyTuple_GET_ITEM(prompts.ptr(), static_cast<Py_ssize_t>(index));
    if (!KeyView::of_call(op, view_id, prompt, top_k, key)) throw nb::python_error();
    return key;
  }
  void set(size_t index, PyObject* owned) const {
    PyList_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(index), owned);
  }
};

PyObject* Instrumentation::cached_batch(PyObject* op, PyObject* view_id, PyObject* given_prompts,
                                        PyObject* top_k, PyObject* compute) {
  const uint64_t start_ticks = ticks_now();
  // What is given may change meanwhile.
  const nb::object prompts = or_raise(PySequence_Tuple(given_prompts));
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(prompts.ptr()));
  const nb::object results = or_raise(PyList_New(static_cast<Py_ssize_t>(count)));

  Batch batch{op, view_id, top_k, compute, prompts, results, start_ticks, {}, {}, {}};
  std::vector<size_t> missing;
  std::vector<std::string> labels;
  const bool was_tracing = is_tracing();
  uint64_t hits = 0;
  for (size_t index = 0; index < count; ++index) {
    const KeyView key = batch.key_of(index);
    const auto keep_label = [&](const std::string& label) {
      if (was_tracing) labels.push_back(label);
    };
    if (PyObject* value = cache_->find(key, start_ticks + index, keep_label)) {
      batch.set(index, value);
      ++hits;
      if (was_tracing && labels.back().empty()) labels.back() = trace_label_of(key);
    } else {
      if (PyErr_Occurred()) throw nb::python_error();
      missing.push_back(index);
    }
  }
  if (hits > 0) {
    const uint64_t wall_ticks = ticks_since(start_ticks);
    stats_->cache_hits.add(hits);
    stats_->scoring_ticks.add(wall_ticks);
    for (const std::string& label : labels)
      trace({}, label, start_ticks + wall_ticks, wall_ticks / hits, TraceEvent::hit);
  }
  if (missing.empty()) return Py_NewRef(results.ptr());

  try {
    for (const size_t index : missing) batch_begin(batch, index);
    if (!batch.leads.empty()) batch_compute(batch);
    batch_wait(batch);
  } catch (std::exception& thrown) {
    nb::python_error error = as_python_error(thrown);
    for (const Batch::Other& other : batch.others)
      if (other.wait_number != 0) flights_.leave(other.wait_number);
    for (const Batch::Lead& lead : batch.leads)
      flights_.fail(flight_of(lead.flight), error.value().ptr());  // Those not ended.
    error.restore();
    return nullptr;
  }
  return Py_NewRef(results.ptr());
}

void Instrumentation::batch_begin(Batch& batch, size_t index) {
  const KeyView key = batch.key_of(index);
  const uint64_t start_ticks = ticks_now();
  if (nb::object value = find_stored(key); value.is_valid()) {
    note_hit(key, {}, start_ticks);
    return batch.set(index, value.release().ptr());
  }
  // What this batch computes without the others' knowledge is known to itself. There are hardly ever any.
  for (const nb::object& solo : batch.solos)
    if (const Flight& mine = flight_of(solo);
        mine.key.key_hash == key.hash && any_equal(key, mine.key) == 1) {
      batch.others.push_back({index, solo, 0});
      return;
    }
  FlightTable::Begun begun = flights_.begin(key, *cache_, &batch, false);
  switch (begun.role) {
    case FlightTable::Role::hit:
      note_hit(key, {}, start_ticks);
      return batch.set(index, begun.value.release().ptr());
    case FlightTable::Role::lead:
    case FlightTable::Role::solo:
      flight_of(begun.flight).label = label_for(key);
      if (begun.role == FlightTable::Role::solo) batch.solos.push_back(begun.flight);
      batch.leads.push_back({index, std::move(begun.flight)});
      return;
    case FlightTable::Role::mine:
    case FlightTable::Role::wait: batch.others.push_back({index, std::move(begun.flight), begun.wait_number});
  }
}

void Instrumentation::batch_compute(Batch& batch) {
  const auto count = static_cast<Py_ssize_t>(batch.leads.size());
  const nb::object indices = or_raise(PyList_New(count));
  std::vector<nb::object> flights;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Batch::Lead& lead = batch.leads[static_cast<size_t>(i)];
    PyList_SET_ITEM(indices.ptr(), i, or_raise(PyLong_FromSize_t(lead.index)).release().ptr());
    flights.push_back(lead.flight);
  }
  const uint64_t start_ticks = ticks_now();
  nb::object values;
  try {
    {
      const InsideFlights inside(flights);
      values = or_raise(PyObject_CallOneArg(batch.compute, indices.ptr()));
    }
    values = checked_results(values, count, batch.op, batch.view_id);
  } catch (nb::python_error& error) {
    const uint64_t wall_ticks = ticks_since(start_ticks);
    for (const Batch::Lead& lead : batch.leads)
      note_failure(flight_of(lead.flight), error.value(), wall_ticks / static_cast<uint64_t>(count));
    throw;
  }
  const uint64_t wall_ticks = ticks_since(start_ticks);
  const uint64_t wall_ticks_each = wall_ticks / static_cast<uint64_t>(count);
  stats_->add_batch(static_cast<uint64_t>(count));
  stats_->scoring_ticks.add(wall_ticks % static_cast<uint64_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Batch::Lead& lead = batch.leads[static_cast<size_t>(i)];
    batch.set(lead.index, keep(lead.flight, PyTuple_GET_ITEM(values.ptr(), i)).release().ptr());
    note_miss(flight_of(lead.flight), wall_ticks_each);
  }
}

void Instrumentation::batch_wait(Batch& batch) {
  for (Batch::Other& other : batch.others) {
    const uint64_t start_ticks = ticks_now();
    if (other.wait_number == 0) {
      const Flight& computed = flight_of(other.flight);
      note_hit(computed.key.view(), computed.label, start_ticks, TraceEvent::waited);
      batch.set(other.index, Py_NewRef(computed.value));
      continue;
    }
    bool is_abandoned = false;
    PyObject* value = wait_for(other.flight, std::exchange(other.wait_number, 0), start_ticks, is_abandoned);
    if (value == nullptr && !is_abandoned) throw nb::python_error();
    if (is_abandoned) {
      // Whoever computed it was interrupted; this batch asks for it alone, and computes it if it must.
      const nb::object again = nb::make_tuple(
          nb::borrow(PyTuple_GET_ITEM(batch.prompts.ptr(), static_cast<Py_ssize_t>(other.index))));
      const size_t index = other.index;
      const auto compute = nb::cpp_function([&batch, index](nb::handle) {
        return nb::steal(PyObject_CallOneArg(batch.compute, nb::list(nb::make_tuple(index)).ptr()));
      });
      const nb::object values =
          or_raise(cached_batch(batch.op, batch.view_id, again.ptr(), batch.top_k, compute.ptr()));
      value = Py_NewRef(PyList_GET_ITEM(values.ptr(), 0));
    }
    batch.set(other.index, value);
  }
}

void Instrumentation::put(nb::handle op, nb::handle view_id, nb::handle prompt, nb::handle top_k,
                          nb::handle value) {
  KeyView key;
  if (!KeyView::of_call(op.ptr(), view_id.ptr(), prompt.ptr(), top_k.ptr(), key)) throw nb::python_error();
  nb::object kept = nb::borrow(value);
  if (persistence_ != nullptr) (persistence_->put(key, kept) ? stats_->stored : stats_->memory_only).add();
  if (!cache_->put(key, kept.ptr(), ticks_now(), label_for(key))) throw nb::python_error();
}

// ------------------------------------------------------------------------------------------------------ tasks

nb::tuple Instrumentation::begin_task(nb::handle op, nb::handle view_id, nb::handle prompt, nb::handle top_k,
                                      nb::handle batch) {
  const uint64_t start_ticks = ticks_now();
  KeyView key;
  if (!KeyView::of_call(op.ptr(), view_id.ptr(), prompt.ptr(), top_k.ptr(), key)) throw nb::python_error();
  std::string label;
  nb::object value;
  if (PyObject* found = cache_->find(key, start_ticks, [&](const std::string& known) { label = known; })) {
    value = nb::steal(found);
  } else {
    if (PyErr_Occurred()) throw nb::python_error();
    value = find_stored(key);
  }
  const auto role_number = [](FlightTable::Role role) { return static_cast<int>(role); };
  if (value.is_valid()) {
    note_hit(key, label, start_ticks);
    return nb::make_tuple(role_number(FlightTable::Role::hit), value, 0);
  }
  FlightTable::Begun begun = flights_.begin(key, *cache_, batch.is_none() ? nullptr : batch.ptr(), true);
  if (begun.role == FlightTable::Role::hit) {
    note_hit(key, {}, start_ticks);
    return nb::make_tuple(role_number(begun.role), begun.value, 0);
  }
  if (begun.role != FlightTable::Role::wait && begun.role != FlightTable::Role::mine)
    flight_of(begun.flight).label = label_for(key);
  return nb::make_tuple(role_number(begun.role), begun.flight, begun.wait_number);
}

nb::object Instrumentation::finish_task(nb::handle flight, nb::handle value, double wall_seconds) {
  nb::object kept = keep(nb::borrow(flight), value);
  note_miss(flight_of(flight), ticks_of(wall_seconds));
  return kept;
}

void Instrumentation::fail_task(nb::handle flight, nb::handle error, double wall_seconds) {
  if (flight_of(flight).state != Flight::State::running) return;
  flights_.fail(flight_of(flight), error.ptr());
  note_failure(flight_of(flight), error, ticks_of(wall_seconds));
}

void Instrumentation::call_when_done(nb::handle flight, nb::handle callback) {
  flights_.call_when_done(flight_of(flight), callback);
}

// (is_there, value) for one who waited; raises what the computation raised.
nb::tuple Instrumentation::outcome(nb::handle flight, nb::handle, double wall_seconds) {
  const Flight& other = flight_of(flight);
  if (other.state == Flight::State::failed) {
    raise(other.error);
    throw nb::python_error();
  }
  if (other.state != Flight::State::done) return nb::make_tuple(false, nb::none());
  note_hit(other.key.view(), other.label, ticks_now() - ticks_of(wall_seconds), TraceEvent::waited);
  return nb::make_tuple(true, nb::borrow(other.value));
}

int Instrumentation::traverse(visitproc visit, void* arg) {
  Py_VISIT(cache_object_.ptr());
  Py_VISIT(trace_object_.ptr());
  Py_VISIT(stats_object_.ptr());
  Py_VISIT(probe_.ptr());
  if (persistence_ != nullptr) Py_VISIT(persistence_->store_object().ptr());
  return 0;
}

// --------------------------------------------------------------------------------------------------- bindings

namespace {

using Method = PyObject* (Instrumentation::*)(PyObject*, PyObject*, PyObject*, PyObject*, PyObject*);

template <Method method>
PyObject* call(PyObject* self, PyObject* const* given) {
  auto* const instrumentation = ready<Instrumentation>(self);
  if (instrumentation == nullptr) return nullptr;
  try {
    return (instrumentation->*method)(given[0], given[1], given[2], given[3], given[4]);
  } catch (std::exception& thrown) {
    as_python_error(thrown).restore();
    return nullptr;
  }
}

PyObject* cached(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static const ArgumentNames kNames("cached", {"op", "view_id", "prompt", "top_k", "compute"});
  PyObject* given[5];
  return kNames.read(arguments, count, names, given) ? call<&Instrumentation::cached>(self, given) : nullptr;
}

PyObject* cached_batch(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static const ArgumentNames kNames("cached_batch", {"op", "view_id", "prompts", "top_k", "compute_misses"});
  PyObject* given[5];
  return kNames.read(arguments, count, names, given) ? call<&Instrumentation::cached_batch>(self, given)
                                                     : nullptr;
}

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef kCached = {
    "cached", as_method(&cached), METH_FASTCALL | METH_KEYWORDS,
    "cached($self, op, view_id, prompt, top_k, compute)\n--\n\n"
    "The result of this call if it is known, else compute(), which is kept.\n\n"
    "Threads that ask for the same thing at once share one computation; if it raises, all of them get the "
    "error and nothing is kept."};
PyMethodDef kCachedBatch = {"cached_batch", as_method(&cached_batch), METH_FASTCALL | METH_KEYWORDS,
                            "cached_batch($self, op, view_id, prompts, top_k, compute_misses)\n--\n\n"
                            "The results of all prompts, in their order. compute_misses(indices) is called "
                            "once, with the indices of what is not "
                            "known, and returns one result for each of them.\n\n"
                            "A prompt that appears twice is computed once, and its second place is a hit."};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Instrumentation>(self)->traverse(visit, arg) : 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {0, nullptr}};

void make(Instrumentation* self, nb::handle cache_maxsize, nb::handle trace_path, nb::handle cache_max_bytes,
          nb::handle size_of, nb::handle store, bool float16) {
  const nb::module_ core = nb::module_::import_("lmemo._core");
  nb::object cache = core.attr("ForwardCache")(cache_maxsize, nb::arg("max_bytes") = cache_max_bytes,
                                               nb::arg("size_of") = size_of);
  nb::object trace = core.attr("TraceWriter")(trace_path);
  std::unique_ptr<Persistence> persistence;
  if (!store.is_none()) persistence = std::make_unique<Persistence>(nb::borrow(store), float16);
  new (self) Instrumentation(std::move(cache), std::move(trace), std::move(persistence));
}

}  // namespace

bool ArgumentNames::read_named(PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                               PyObject** given) const {
  const auto expected = static_cast<Py_ssize_t>(names_.size());
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  if (count > expected) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, %zd were given", function_, expected,
                 count + named);
    return false;
  }
  std::fill_n(given, expected, nullptr);
  std::copy_n(arguments, count, given);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    Py_ssize_t place = 0;
    while (place < expected && PyUnicode_Compare(names_[static_cast<size_t>(place)], name) != 0) ++place;
    if (place == expected || given[place] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() got %s argument %R", function_,
                   place == expected ? "an unexpected" : "a second value for", name);
      return false;
    }
    given[place] = arguments[count + i];
  }
  for (Py_ssize_t place = 0; place < expected; ++place)
    if (given[place] == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() lacks the argument %R", function_,
                   names_[static_cast<size_t>(place)]);
      return false;
    }
  return true;
}

void init_forward(nb::module_& m) {
  init_forward_cache(m);
  init_forward_stats(m);
  init_forward_trace(m);
  init_forward_flights(m);
  init_forward_values(m);
  init_forward_instrumentation(m);
}

void init_forward_instrumentation(nb::module_& m) {
  nb::class_<Instrumentation> instrumentation(m, "Instrumentation", nb::type_slots(kSlots),
                                              "The compiled part of lmemo.forward.BackendInstrumentation.");
  instrumentation
      .def(
          "__init__", &make, nb::kw_only(), "cache_maxsize"_a = 256, "trace_path"_a = nb::none(),
          "cache_max_bytes"_a = nb::none(), "size_of"_a = nb::none(), "store"_a = nb::none(),
          "float16"_a = false,
          nb::sig("def __init__(self, *, cache_maxsize: int = 256, trace_path: str | os.PathLike[str] | None "
                  "= None, "
                  "cache_max_bytes: int | str | None = None, size_of: Callable[[Any], int] | None = None, "
                  "store: StoreBase | None = None, float16: bool = False) -> None"),
          "cache_maxsize, cache_max_bytes, size_of: the limits of the cache in memory, as for ForwardCache.\n"
          "trace_path: a line for every lookup is appended there.\n"
          "store: results survive the process and are shared with others that use the same store.\n"
          "float16: floating-point arrays are stored with half precision. This is part of their identity, "
          "and a "
          "result is rounded when it is computed, so that it is the same whoever asks.")
      .def_prop_ro(
          "cache", [](const Instrumentation& self) { return self.cache_object(); },
          nb::sig("def cache(self) -> ForwardCache"),
          "What is kept in memory; keys are (op, view_id, prompt, top_k).")
      .def_prop_rw(
          "trace", &Instrumentation::trace_object,
          [](Instrumentation& self, nb::object trace) {
            if (!nb::isinstance<TraceObject>(trace)) {
              PyErr_Format(PyExc_TypeError,
                           "trace: expected a TraceWriter, found %R; TraceWriter(None) writes nothing",
                           trace.ptr());
              throw nb::python_error();
            }
            self.set_trace(std::move(trace));
          },
          nb::for_getter(nb::sig("def trace(self) -> TraceWriter")), nb::for_setter("trace"_a.none()),
          nb::for_setter(nb::sig("def trace(self, trace: TraceWriter, /) -> None")),
          "Where lookups are written down. May be replaced at any time; the old one stays open if somebody "
          "else holds it.")
      .def_prop_ro(
          "stats", [](const Instrumentation& self) { return self.stats_object(); },
          nb::sig("def stats(self) -> BackendStats"), "What happened so far.")
      .def_prop_ro(
          "store",
          [](const Instrumentation& self) {
            return self.persistence() ? self.persistence()->store_object() : nb::none();
          },
          nb::sig("def store(self) -> StoreBase | None"), "Where results survive, or None.")
      .def_prop_ro("current_probe", &Instrumentation::current_probe,
                   nb::sig("def current_probe(self) -> str | None"), "The label of trace lines.")
      .def(
          "set_current_probe", &Instrumentation::set_current_probe, "name"_a.none(),
          nb::sig("def set_current_probe(self, name: str | None) -> None"),
          "Labels the trace lines from here on. What was traced under another label is in the file when this "
          "returns.")
      .def("close", &Instrumentation::close,
           "Closes the trace and publishes what was put into the store. The cache goes on working.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](Instrumentation& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("put", &Instrumentation::put, "op"_a, "view_id"_a, "prompt"_a.none(), "top_k"_a.none(),
           "value"_a.none(),
           nb::sig("def put(self, op: str, view_id: str, prompt: Any, top_k: Any, value: Any) -> None"),
           "Keeps a result that was computed elsewhere. Counts no lookup.")
      .def("_begin", &Instrumentation::begin_task, "op"_a.none(), "view_id"_a.none(), "prompt"_a.none(),
           "top_k"_a.none(), "batch"_a.none())
      .def("_finish", &Instrumentation::finish_task, "flight"_a, "value"_a.none(), "wall_seconds"_a)
      .def("_fail", &Instrumentation::fail_task, "flight"_a, "error"_a, "wall_seconds"_a)
      .def("_call_when_done", &Instrumentation::call_when_done, "flight"_a, "callback"_a)
      .def("_outcome", &Instrumentation::outcome, "flight"_a, "wait_number"_a.none(), "wall_seconds"_a)
      .def("_leave", &Instrumentation::leave, "wait_number"_a)
      .def("_note_batch", &Instrumentation::note_batch, "prompts"_a);
  m.def("checked_results", &checked_results, "given"_a.none(), "count"_a, "op"_a.none(), "view_id"_a.none());
  add_method(instrumentation, kCached);
  add_method(instrumentation, kCachedBatch);
}

}  // namespace lmemo::python
