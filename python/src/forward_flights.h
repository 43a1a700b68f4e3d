// Single flight: of all who ask for the same thing at the same time, one computes and the others wait.
//
// A computation may itself ask, in its own thread or in tasks and threads that inherit its context. So every flight knows, through a context
// variable, inside which other flights it was asked for, and nobody waits for a flight that, in the end, waits for him: he computes by
// himself instead.
#pragma once

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "forward_cache.h"
#include "forward_key.h"

namespace lmemo::python {

class FlightTable;

// One computation under way. A Python object (_Flight): callers, waiters and context variables hold it.
class Flight {
 public:
  enum class State {
    running,
    done,
    failed,
    abandoned,  // Its owner was interrupted or cancelled: whoever waits asks again.
  };

  // Belongs to the calling thread.
  Flight(const KeyView& view, const void* owner)
      : key(view), batch(owner), thread(PyThread_get_thread_ident()) {}
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  const OwnedKey key;
  const void* const batch;  // Who computes several at once; nullptr: nobody.
  const uint64_t thread;    // That computes it, or whose event loop does.
  std::string label;        // For the trace.

  // Guarded by the mutex of the table; the objects also by the GIL.
  State state = State::running;
  PyObject* value = nullptr;
  PyObject* error = nullptr;
  std::vector<PyObject*> callbacks;
  std::condition_variable ended;
};

using FlightRef = nanobind::object;  // Of a Flight.
inline Flight& flight_of(nanobind::handle flight) { return *nanobind::inst_ptr<Flight>(flight); }

class FlightTable {
 public:
  FlightTable();
  ~FlightTable();
  FlightTable(const FlightTable&) = delete;
  FlightTable& operator=(const FlightTable&) = delete;

  enum class Role {
    hit,   // Somebody finished it since the caller looked: `value`.
    lead,  // The caller computes `flight`, and must end it.
    wait,  // Somebody else computes `flight`. The caller is on record as waiting: call leave().
    mine,  // The batch of the caller computes `flight` already.
    solo,  // Waiting would never end: the caller computes `flight`, which nobody else can find.
  };
  struct Begun {
    Role role;
    nanobind::object flight;
    nanobind::object value;
    uint64_t wait_number = 0;
  };

  // Raises what comparing keys raises. `cache` is looked at once more, so that nothing is computed twice.
  // is_task: the caller will wait as a task, which leaves its thread to others.
  Begun begin(const KeyView& key, ForwardCache& cache, const void* batch, bool is_task);

  // Ends a flight, wakes everybody who waits for it and calls their callbacks.
  // Requires: a value that others may use is in the cache already.
  void finish(Flight& flight, PyObject* value);
  // An exception that is no Exception (KeyboardInterrupt, CancelledError) is the owner's own affair: the flight is abandoned.
  void fail(Flight& flight, PyObject* error);

  // Blocks without the GIL; looks at signals. False with a Python exception (of a signal handler).
  bool wait(Flight& flight);
  void leave(uint64_t wait_number);
  // Calls callback() when the flight has ended, at once if it has.
  void call_when_done(Flight& flight, nanobind::handle callback);

 private:
  friend struct FlightForkHandlers;
  // In a child that was forked: flights of threads that exist in the parent only are abandoned.
  void begin_child();

  struct Wait {
    uint64_t number;
    const Flight* target;
    std::vector<const Flight*> inside;  // The flights that cannot end before the target does.
    uint64_t blocked_thread;            // Nor can any flight of this thread; 0: none.
  };

  Begun join_or_avoid(const nanobind::object& found, nanobind::object& fresh, Wait& wait);
  bool would_wait_for_itself(const Wait& wait) const;
  static bool blocks(const Wait& wait, const Flight& flight);
  void end(Flight& flight, Flight::State state, PyObject* value, PyObject* error);

  std::mutex mutex_;  // Guards everything below, and the state of every flight. No Python code runs under it.
  std::unordered_multimap<uint64_t, nanobind::object> flights_;  // By the hash of the key.
  uint64_t version_ = 0;
  std::vector<Wait> waits_;
  uint64_t next_wait_ = 1;
  std::vector<nanobind::object> lost_;  // Flights that fork() left without a thread.
};

// The flights around the caller, as the context variable has them; and the same with one more, until the end of the scope.
std::vector<const Flight*> flights_around();
class InsideFlights {
 public:
  explicit InsideFlights(const std::vector<nanobind::object>& flights);
  ~InsideFlights();
  InsideFlights(const InsideFlights&) = delete;
  InsideFlights& operator=(const InsideFlights&) = delete;

 private:
  nanobind::object token_;
};

}  // namespace lmemo::python
