#include "forward_stats.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "forward_bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

struct CounterRow {
  const char* name;
  PythonCounter BackendStats::* counter;
  const char* doc;
};

// In the order of to_dict(). scoring_wall_s and max_batch_size are not counters of this kind.
constexpr CounterRow kCounters[] = {
    {"cache_hits", &BackendStats::cache_hits, "Lookups that needed no forward pass."},
    {"cache_misses", &BackendStats::cache_misses, "Lookups that did, and got their result."},
    {"forward_passes", &BackendStats::forward_passes, "Prompts that were computed."},
    {"batches_sent", &BackendStats::batches_sent, "Calls of compute_misses that returned."},
    {"batched_prompts", &BackendStats::batched_prompts, "Prompts in those calls."},
};
constexpr CounterRow kMoreCounters[] = {
    {"failures", &BackendStats::failures, "Prompts whose computation raised; they count as no lookup."},
    {"shared", &BackendStats::shared,
     "Hits that waited for the forward pass of another thread, task or place in the batch."},
    {"store_hits", &BackendStats::store_hits, "Hits that came from the store."},
    {"stored", &BackendStats::stored, "Results that were put into the store."},
    {"memory_only", &BackendStats::memory_only,
     "Results that are kept in memory alone: no codec, or the store said no."},
    {"unreadable", &BackendStats::unreadable,
     "Entries of the store that could not be read; each was a miss."},
};

nb::dict to_dict(const BackendStats& self, bool everything) {
  nb::dict result;
  result["cache_hits"] = self.cache_hits.total();
  result["cache_misses"] = self.cache_misses.total();
  result["forward_passes"] = self.forward_passes.total();
  result["scoring_wall_s"] = self.scoring_wall_s();
  result["hit_rate"] = self.hit_rate();
  result["batches_sent"] = self.batches_sent.total();
  result["batched_prompts"] = self.batched_prompts.total();
  result["max_batch_size"] = self.max_batch_size.load();
  result["avg_batch_size"] = self.avg_batch_size();
  if (everything)
    for (const CounterRow& row : kMoreCounters) result[row.name] = (self.*row.counter).total();
  return result;
}

bool equals(const BackendStats& a, const BackendStats& b) {
  for (const CounterRow& row : kCounters)
    if ((a.*row.counter).total() != (b.*row.counter).total()) return false;
  for (const CounterRow& row : kMoreCounters)
    if ((a.*row.counter).total() != (b.*row.counter).total()) return false;
  return a.max_batch_size.load() == b.max_batch_size.load() && a.scoring_wall_s() == b.scoring_wall_s();
}

std::string describe(nb::handle self) {
  std::string text = "BackendStats(";
  const auto& stats = nb::cast<const BackendStats&>(self);
  for (const char* name : {"cache_hits", "cache_misses", "forward_passes", "scoring_wall_s", "batches_sent",
                           "batched_prompts", "max_batch_size"})
    text += std::string(name) + "=" + nb::cast<std::string>(nb::repr(self.attr(name))) + ", ";
  for (const CounterRow& row : kMoreCounters)
    if (const uint64_t count = (stats.*row.counter).total())
      text += std::string(row.name) + "=" + std::to_string(count) + ", ";
  text.resize(text.size() - 2);
  return text + ")";
}

// All that there is, in a fixed order: a copy, or a pickle, of the counters at one moment.
nb::tuple state_of(const BackendStats& self) {
  nb::list counts;
  for (const CounterRow& row : kCounters) counts.append((self.*row.counter).total());
  for (const CounterRow& row : kMoreCounters) counts.append((self.*row.counter).total());
  return nb::make_tuple(self.scoring_wall_s(), self.max_batch_size.load(), nb::tuple(counts));
}

void set_state(BackendStats& self, const std::tuple<double, uint64_t, std::vector<uint64_t>>& state) {
  const auto& [scoring_wall_s, max_batch_size, counts] = state;
  if (counts.size() != std::size(kCounters) + std::size(kMoreCounters))
    throw nb::value_error("BackendStats: the state has another number of counters");
  new (&self) BackendStats;
  self.set_scoring_wall_s(scoring_wall_s);
  self.max_batch_size = max_batch_size;
  auto count = counts.begin();
  for (const CounterRow& row : kCounters) (self.*row.counter).set(*count++);
  for (const CounterRow& row : kMoreCounters) (self.*row.counter).set(*count++);
}

}  // namespace

void init_forward_stats(nb::module_& m) {
  nb::class_<BackendStats> stats(
      m, "BackendStats",
      "Counters of everything that went through one BackendInstrumentation, exact under threads.");
  stats
      .def(
          "__init__",
          [](BackendStats* self, uint64_t hits, uint64_t misses, uint64_t passes, double wall,
             uint64_t batches, uint64_t batched, uint64_t largest) {
            new (self) BackendStats;
            self->cache_hits.set(hits);
            self->cache_misses.set(misses);
            self->forward_passes.set(passes);
            self->set_scoring_wall_s(wall);
            self->batches_sent.set(batches);
            self->batched_prompts.set(batched);
            self->max_batch_size = largest;
          },
          "cache_hits"_a = 0, "cache_misses"_a = 0, "forward_passes"_a = 0, "scoring_wall_s"_a = 0.0,
          "batches_sent"_a = 0, "batched_prompts"_a = 0, "max_batch_size"_a = 0)
      .def_prop_rw("scoring_wall_s", &BackendStats::scoring_wall_s, &BackendStats::set_scoring_wall_s,
                   "Seconds spent inside scoring calls: forward passes, hits and waits.")
      .def_prop_rw(
          "max_batch_size", [](const BackendStats& self) { return self.max_batch_size.load(); },
          [](BackendStats& self, uint64_t value) { self.max_batch_size = value; }, "The largest batch sent.")
      .def_prop_ro("total_lookups", &BackendStats::total_lookups, "cache_hits + cache_misses")
      .def_prop_ro("hit_rate", &BackendStats::hit_rate,
                   "cache_hits / total_lookups; 0.0 before the first lookup.")
      .def_prop_ro("avg_batch_size", &BackendStats::avg_batch_size,
                   "batched_prompts / batches_sent; 0.0 before the first batch.")
      .def("to_dict", &to_dict, "everything"_a = false,
           nb::sig("def to_dict(self, everything: bool = False) -> dict[str, int | float]"),
           "The seven counters, hit_rate and avg_batch_size; with everything=True the further counters too.")
      .def("__getstate__", &state_of, nb::sig("def __getstate__(self) -> tuple[Any, ...]"))
      .def("__setstate__", &set_state, nb::sig("def __setstate__(self, state: tuple[Any, ...], /) -> None"))
      .def("__eq__", &equals, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](nb::handle self) { return describe(self); }, nb::sig("def __repr__(self) -> str"));
  const auto add_counter = [&](const CounterRow& row) {
    const auto counter = row.counter;
    stats.def_prop_rw(
        row.name, [counter](const BackendStats& self) { return (self.*counter).total(); },
        [counter](BackendStats& self, uint64_t value) { (self.*counter).set(value); }, row.doc);
  };
  for (const CounterRow& row : kCounters) add_counter(row);
  for (const CounterRow& row : kMoreCounters) add_counter(row);
  stats.attr("__hash__") = nb::none();
}

}  // namespace lmemo::python
