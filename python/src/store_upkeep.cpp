// The methods that look after a store: stats, verify, repair, prune, evict, compact, clear.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "long_work.h"
#include "store_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// Runs `work(store, watch)` where Ctrl-C can stop it, and raises its error.
template <typename Work>
auto watched(const StoreObject& self, nb::handle progress, Work&& work) {
  const std::shared_ptr<Store> store = self.hold();
  auto result = run_with_result(progress, [&](const Watch& watch) { return work(*store, watch); });
  self.deliver_notices();
  return value_or_raise(std::move(result));
}

std::string kind_or_all(nb::handle kind) {
  if (kind.is_none()) return {};
  if (!PyUnicode_Check(kind.ptr())) throw nb::type_error("kind: expected str or None");
  std::string text = utf8_of(kind);
  if (text.empty()) throw nb::value_error("kind: expected a name; None stands for every kind");
  return text;
}

StoreStats stats(const StoreObject& self) {
  return self.without_gil([](Store& store) { return store.stats(); });
}

VerifyReport verify(const StoreObject& self, nb::handle progress) {
  return watched(self, progress, [](Store& store, const Watch& watch) { return store.verify(watch); });
}

RepairReport repair(const StoreObject& self, nb::handle progress) {
  return watched(self, progress, [](Store& store, const Watch& watch) { return store.repair(watch); });
}

RemovalReport prune(const StoreObject& self, nb::handle older_than, nb::handle kind, nb::handle progress) {
  const double seconds = seconds_of(older_than, "older_than");
  const std::string only_kind = kind_or_all(kind);
  return watched(self, progress,
                 [&](Store& store, const Watch& watch) { return store.prune(seconds, only_kind, watch); });
}

RemovalReport evict(const StoreObject& self, nb::handle target_bytes, nb::handle progress) {
  const uint64_t target = byte_count_of(target_bytes, "target_bytes");
  return watched(self, progress,
                 [&](Store& store, const Watch& watch) { return store.evict(target, watch); });
}

RemovalReport compact(const StoreObject& self, nb::handle progress) {
  return watched(self, progress, [](Store& store, const Watch& watch) { return store.compact(watch); });
}

RemovalReport clear(const StoreObject& self, nb::handle kind) {
  const std::string only_kind = kind_or_all(kind);
  return value_or_raise(self.without_gil([&](Store& store) { return store.clear(only_kind); }));
}

}  // namespace

void def_upkeep(StoreClass& store) {
  store.def("stats", &stats, "What is stored, and what this object did since it was opened.")
      .def("verify", &verify, nb::kw_only(), "progress"_a = nb::none(),
           nb::sig(
               "def verify(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport"),
           "Reads and checks everything, and changes nothing.")
      .def("repair", &repair, nb::kw_only(), "progress"_a = nb::none(),
           nb::sig(
               "def repair(self, *, progress: Callable[[Progress], object] | None = None) -> RepairReport"),
           "Takes damaged entries and leftovers out, and keeps everything else.")
      .def(
          "prune", &prune, "older_than"_a, "kind"_a = nb::none(), nb::kw_only(), "progress"_a = nb::none(),
          nb::sig("def prune(self, older_than: float | datetime.timedelta | str, kind: str | None = None, *, "
                  "progress: Callable[[Progress], object] | None = None) -> RemovalReport"),
          "Drops what was neither put nor found for so long (seconds, a timedelta, or \"30d\"), and gives "
          "the space "
          "back.")
      .def("evict", &evict, "target_bytes"_a, nb::kw_only(), "progress"_a = nb::none(),
           nb::sig("def evict(self, target_bytes: int | str, *, "
                   "progress: Callable[[Progress], object] | None = None) -> RemovalReport"),
           "Makes room: the least recently used entries go, until the store takes at most this much.")
      .def("compact", &compact, nb::kw_only(), "progress"_a = nb::none(),
           nb::sig(
               "def compact(self, *, progress: Callable[[Progress], object] | None = None) -> RemovalReport"),
           "Rewrites what is alive and gives the rest back to the disk, while others read and write.")
      .def("clear", &clear, "kind"_a = nb::none(),
           nb::sig("def clear(self, kind: str | None = None) -> RemovalReport"),
           "Removes every entry, or every entry of one kind.");
}

}  // namespace lmemo::python
