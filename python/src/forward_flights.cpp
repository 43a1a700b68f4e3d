#include "forward_flights.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <set>

#include "base/tick_clock.h"
#include "forward_bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

constexpr auto kSignalInterval = std::chrono::milliseconds(50);

// Holds a tuple of _Flight objects, outermost first.
PyObject* context_variable() {
  static PyObject* const variable = PyContextVar_New("lmemo.forward.flights", nullptr);
  return variable;
}

nb::object flights_in_context() {
  PyObject* flights = nullptr;
  if (PyContextVar_Get(context_variable(), nullptr, &flights) != 0) throw nb::python_error();
  return flights == nullptr ? nb::object() : nb::steal(flights);
}

// Every table there is, for fork(). Never destroyed.
struct Registry {
  std::mutex mutex;
  std::set<FlightTable*> tables;
};
Registry& registry() {
  static auto* const only = new Registry;
  return *only;
}

}  // namespace

struct FlightForkHandlers {
  static void before() {
    registry().mutex.lock();
    for (FlightTable* table : registry().tables) table->mutex_.lock();
  }
  static void unlock_all() {
    for (FlightTable* table : registry().tables) table->mutex_.unlock();
    registry().mutex.unlock();
  }
  static void in_child() {
    for (FlightTable* table : registry().tables) table->begin_child();
    unlock_all();
  }
  static void install() {
    [[maybe_unused]] static const int installed = pthread_atfork(&before, &unlock_all, &in_child);
  }
};

FlightTable::FlightTable() {
  FlightForkHandlers::install();
  const std::lock_guard lock(registry().mutex);
  registry().tables.insert(this);
}

FlightTable::~FlightTable() {
  const std::lock_guard lock(registry().mutex);
  registry().tables.erase(this);
}

// Runs no Python code and touches no reference count.
void FlightTable::begin_child() {
  const uint64_t survivor = PyThread_get_thread_ident();
  for (auto place = flights_.begin(); place != flights_.end();) {
    Flight& flight = flight_of(place->second);
    new (&flight.ended) std::condition_variable;  // Those that waited exist in the parent only.
    if (flight.thread == survivor) {
      ++place;
      continue;
    }
    flight.state = Flight::State::abandoned;
    lost_.push_back(std::move(place->second));
    place = flights_.erase(place);
    ++version_;
  }
  std::erase_if(
      waits_, [&](const Wait& wait) { return wait.blocked_thread != 0 && wait.blocked_thread != survivor; });
}

Flight::~Flight() {
  Py_XDECREF(value);
  Py_XDECREF(error);
  for (PyObject* callback : callbacks) Py_DECREF(callback);
}

std::vector<const Flight*> flights_around() {
  std::vector<const Flight*> result;
  const nb::object flights = flights_in_context();
  if (!flights.is_valid()) return result;
  for (const nb::handle flight : nb::borrow<nb::tuple>(flights)) result.push_back(&flight_of(flight));
  return result;
}

InsideFlights::InsideFlights(const std::vector<nb::object>& flights) {
  const nb::object outer = flights_in_context();
  const Py_ssize_t outer_count = outer.is_valid() ? PyTuple_GET_SIZE(outer.ptr()) : 0;
  const nb::object all = nb::steal(PyTuple_New(outer_count + static_cast<Py_ssize_t>(flights.size())));
  if (!all.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < outer_count; ++i)
    PyTuple_SET_ITEM(all.ptr(), i, Py_NewRef(PyTuple_GET_ITEM(outer.ptr(), i)));
  for (size_t i = 0; i < flights.size(); ++i)
    PyTuple_SET_ITEM(all.ptr(), outer_count + static_cast<Py_ssize_t>(i), Py_NewRef(flights[i].ptr()));
  token_ = nb::steal(PyContextVar_Set(context_variable(), all.ptr()));
  if (!token_.is_valid()) throw nb::python_error();
}

InsideFlights::~InsideFlights() {
  const nb::error_scope raised;  // What the computation raised stays raised.
  if (PyContextVar_Reset(context_variable(), token_.ptr()) != 0) PyErr_Clear();
}

bool FlightTable::blocks(const Wait& wait, const Flight& flight) {
  if (wait.blocked_thread != 0 && flight.thread == wait.blocked_thread) return true;
  return std::find(wait.inside.begin(), wait.inside.end(), &flight) != wait.inside.end();
}

// Follows who waits for whom, from the target on. Flights and waits are few: those under way right now.
bool FlightTable::would_wait_for_itself(const Wait& wait) const {
  std::vector<const Flight*> seen = {wait.target};
  for (size_t i = 0; i < seen.size(); ++i) {
    if (blocks(wait, *seen[i])) return true;
    for (const Wait& other : waits_)
      if (blocks(other, *seen[i]) && std::find(seen.begin(), seen.end(), other.target) == seen.end())
        seen.push_back(other.target);
  }
  return false;
}

// Requires: mutex_ is held, and the flight is running. Makes no Python object: that could start the garbage collector.
FlightTable::Begun FlightTable::join_or_avoid(const nb::object& found, nb::object& fresh, Wait& wait) {
  const void* const batch = flight_of(fresh).batch;
  if (batch != nullptr && flight_of(found).batch == batch) return {Role::mine, found, {}};
  wait.target = &flight_of(found);
  if (would_wait_for_itself(wait)) return {Role::solo, std::move(fresh), {}};
  wait.number = next_wait_++;
  waits_.push_back(std::move(wait));
  return {Role::wait, found, {}, waits_.back().number};
}

FlightTable::Begun FlightTable::begin(const KeyView& key, ForwardCache& cache, const void* batch,
                                      bool is_task) {
  nb::object fresh = nb::cast(new Flight(key, batch), nb::rv_policy::take_ownership);
  Wait wait{0, nullptr, flights_around(), is_task ? 0 : flight_of(fresh).thread};
  while (true) {
    // Keys that only their own code can compare are compared between two looks, as in the cache.
    std::vector<nb::object> candidates;
    uint64_t version;
    {
      const std::lock_guard lock(mutex_);
      version = version_;
      const auto [first, last] = flights_.equal_range(key.hash);
      for (auto place = first; place != last; ++place) {
        const nb::object& flight = place->second;
        const OwnedKey& other = flight_of(flight).key;
        if (!key.is_plain || !other.is_plain) {
          candidates.push_back(flight);
        } else if (plain_equal(key, other)) {
          return join_or_avoid(flight, fresh, wait);
        }
      }
    }
    for (const nb::object& candidate : candidates) {
      const int is_equal = any_equal(key, flight_of(candidate).key);
      if (is_equal < 0) throw nb::python_error();
      if (is_equal == 0) continue;
      const std::lock_guard lock(mutex_);
      if (flight_of(candidate).state == Flight::State::running) return join_or_avoid(candidate, fresh, wait);
    }
    if (PyObject* value = cache.find(key, ticks_now())) return {Role::hit, {}, nb::steal(value)};
    if (PyErr_Occurred()) throw nb::python_error();

    const std::lock_guard lock(mutex_);
    if (version != version_) continue;
    flights_.emplace(key.hash, fresh);
    ++version_;
    return {Role::lead, std::move(fresh), {}};
  }
}

void FlightTable::end(Flight& flight, Flight::State state, PyObject* value, PyObject* error) {
  std::vector<PyObject*> callbacks;
  nb::object listed;  // Let go of when no lock is held.
  {
    const std::lock_guard lock(mutex_);
    if (flight.state != Flight::State::running) return;
    flight.state = state;
    flight.value = Py_XNewRef(value);
    flight.error = Py_XNewRef(error);
    callbacks.swap(flight.callbacks);
    const auto [first, last] = flights_.equal_range(flight.key.key_hash);
    const auto place =
        std::find_if(first, last, [&](const auto& other) { return &flight_of(other.second) == &flight; });
    if (place != last) {
      listed = std::move(place->second);
      flights_.erase(place);
      ++version_;
    }
    flight.ended.notify_all();
  }
  for (PyObject* callback : callbacks) {
    const nb::object done = nb::steal(PyObject_CallNoArgs(callback));
    if (!done.is_valid())
      PyErr_WriteUnraisable(callback);  // A closed event loop; nobody waits there any more.
    Py_DECREF(callback);
  }
}

void FlightTable::finish(Flight& flight, PyObject* value) {
  end(flight, Flight::State::done, value, nullptr);
}

void FlightTable::fail(Flight& flight, PyObject* error) {
  const bool is_failure = PyObject_TypeCheck(error, reinterpret_cast<PyTypeObject*>(PyExc_Exception)) != 0;
  end(flight, is_failure ? Flight::State::failed : Flight::State::abandoned, nullptr,
      is_failure ? error : nullptr);
}

bool FlightTable::wait(Flight& flight) {
  while (true) {
    bool has_ended;
    Py_BEGIN_ALLOW_THREADS {
      std::unique_lock lock(mutex_);
      has_ended = flight.ended.wait_for(lock, kSignalInterval,
                                        [&] { return flight.state != Flight::State::running; });
    }
    Py_END_ALLOW_THREADS if (has_ended) return true;
    if (PyErr_CheckSignals() != 0) return false;
  }
}

void FlightTable::leave(uint64_t wait_number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waits_, [&](const Wait& wait) { return wait.number == wait_number; });
}

void FlightTable::call_when_done(Flight& flight, nb::handle callback) {
  {
    const std::lock_guard lock(mutex_);
    if (flight.state == Flight::State::running) {
      flight.callbacks.push_back(Py_NewRef(callback.ptr()));
      return;
    }
  }
  callback();
}

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Flight& flight = *nb::inst_ptr<Flight>(self);
  for (int i = 0; i < flight.key.count; ++i) Py_VISIT(flight.key.part[i]);
  Py_VISIT(flight.value);
  Py_VISIT(flight.error);
  for (PyObject* callback : flight.callbacks) Py_VISIT(callback);
  return 0;
}
int drop(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  Flight& flight = *nb::inst_ptr<Flight>(self);
  Py_CLEAR(flight.value);
  Py_CLEAR(flight.error);
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(&drop)},
                        {0, nullptr}};

}  // namespace

void init_forward_flights(nb::module_& m) {
  nb::class_<Flight>(m, "Flight", nb::type_slots(kSlots), "One computation under way.");
  m.attr("_flights") = nb::borrow(context_variable());
}

}  // namespace lmemo::python
