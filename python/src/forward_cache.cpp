#include "forward_cache.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <vector>

#include "base/tick_clock.h"
#include "forward_bindings.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// The key in the table that equals this one. nullopt: none, or a Python exception.
std::optional<OwnedKey> equal_key(const KeyView& key, const std::vector<OwnedKey>& candidates) {
  for (const OwnedKey& candidate : candidates) {
    const int is_equal = any_equal(key, candidate);
    if (is_equal < 0) return std::nullopt;
    if (is_equal == 1) return candidate;
  }
  return std::nullopt;
}

}  // namespace

// Comparing may run any code, which may use this very cache: so it happens between two looks at the table.
std::optional<OwnedKey> ForwardCache::equal_key_of(const KeyView& key) {
  std::vector<OwnedKey> candidates;
  table_.find_candidates(key.hash, [&](const CacheNode& node) { candidates.emplace_back(node.key); });
  return equal_key(key, candidates);
}

bool ForwardCache::put_among_objects(CacheNode* node, uint64_t tick) {
  while (true) {
    std::vector<OwnedKey> candidates;
    const uint64_t version = table_.find_candidates(
        node->hash, [&](const CacheNode& other) { candidates.emplace_back(other.key); });
    const std::optional<OwnedKey> known = equal_key(node->key.view(), candidates);
    if (!known && PyErr_Occurred()) {
      delete node;
      return false;
    }
    const auto put = table_.put(
        node, tick, [&](const CacheNode& other) { return known && other.key.is_same_object_as(*known); },
        version);
    if (put.is_refused) continue;
    delete_all(put.removed);
    return true;
  }
}

bool ForwardCache::put(const KeyView& key, PyObject* value, uint64_t tick, std::string label) {
  uint64_t byte_count = 0;
  if (!size_of_.is_none()) {
    const nb::object size = nb::steal(PyObject_CallOneArg(size_of_.ptr(), value));
    if (!size.is_valid()) return false;
    byte_count = PyLong_AsUnsignedLongLong(size.ptr());
    if (byte_count == static_cast<uint64_t>(-1) && PyErr_Occurred()) return false;
  }
  auto* const node = new CacheNode(key, value);
  node->byte_count = byte_count;
  node->label = std::move(label);
  if (!key.is_plain) return put_among_objects(node, tick);
  // A plain key can equal one that is not: 1 and an object that says so. As rare as that is, nothing else may decide.
  bool meets_objects = false;
  table_.find_candidates(key.hash, [&](const CacheNode& other) { meets_objects |= !other.key.is_plain; });
  if (meets_objects) return put_among_objects(node, tick);
  delete_all(
      table_
          .put(node, tick,
               [&](const CacheNode& other) { return other.key.is_plain && plain_equal(key, other.key); })
          .removed);
  return true;
}

int ForwardCache::traverse(visitproc visit, void* arg) {
  int result = 0;
  const auto see = [&](PyObject* object) {
    if (result == 0 && object != nullptr) result = visit(object, arg);
  };
  see(size_of_.ptr());
  table_.for_each([&](const CacheNode& node) {
    for (int i = 0; i < node.key.count; ++i) see(node.key.part[i]);
    see(node.value);
  });
  return result;
}

void ForwardCache::drop_objects() {
  clear();
  nb::object(std::move(size_of_)).reset();
  size_of_ = nb::none();
}

PyObject* miss_sentinel() {
  static PyObject* const sentinel = [] {
    // A plain object, so that `is` is the only question one can ask.
    return PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  }();
  return sentinel;
}

namespace {

PyObject* cache_get(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  PyObject* given[1];
  static const ArgumentNames kNames("get", {"key"});
  auto* const cache = ready<ForwardCache>(self);
  if (cache == nullptr || !kNames.read(arguments, count, names, given)) return nullptr;
  KeyView key;
  if (!KeyView::of_object(given[0], key)) return nullptr;
  if (PyObject* value = cache->find(key, ticks_now())) return value;
  return PyErr_Occurred() ? nullptr : Py_NewRef(miss_sentinel());
}

PyObject* cache_put(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  PyObject* given[2];
  static const ArgumentNames kNames("put", {"key", "value"});
  auto* const cache = ready<ForwardCache>(self);
  if (cache == nullptr || !kNames.read(arguments, count, names, given)) return nullptr;
  KeyView key;
  if (!KeyView::of_object(given[0], key)) return nullptr;
  if (!cache->put(key, given[1], ticks_now())) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef kGet = {
    "get", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&cache_get)),
    METH_FASTCALL | METH_KEYWORDS,
    "get($self, key)\n--\n\n"
    "The value, which becomes the most recent, or the sentinel `_MISS`: a cached None is a hit."};
PyMethodDef kPut = {"put", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&cache_put)),
                    METH_FASTCALL | METH_KEYWORDS,
                    "put($self, key, value)\n--\n\n"
                    "Keeps the value as the most recent, and drops the least recent ones beyond the limits."};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<ForwardCache>(self)->traverse(visit, arg) : 0;
}
int drop(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<ForwardCache>(self)->drop_objects();
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(&drop)},
                        {0, nullptr}};

}  // namespace

uint64_t checked_maxsize(nb::handle maxsize) {
  const nb::object number = nb::steal(PyNumber_Index(maxsize.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow < 0 || (overflow == 0 && value <= 0)) {
    PyErr_Format(PyExc_ValueError, "maxsize must be positive; got %S", number.ptr());
    throw nb::python_error();
  }
  return overflow > 0 ? UINT64_MAX : static_cast<uint64_t>(value);
}

void make_cache(ForwardCache* self, nb::handle maxsize, nb::handle max_bytes, nb::handle size_of) {
  const uint64_t max_entries = checked_maxsize(maxsize);
  const uint64_t limit = max_bytes.is_none() ? 0 : byte_count_of(max_bytes, "max_bytes");
  if (!max_bytes.is_none() && limit == 0)
    throw nb::value_error("max_bytes must be positive; None means no limit");
  nb::object weigh = nb::none();
  if (!size_of.is_none()) {
    if (!PyCallable_Check(size_of.ptr()))
      throw nb::type_error("size_of: expected a function from a value to its bytes");
    weigh = nb::borrow(size_of);
  } else if (limit > 0) {
    weigh = nb::module_::import_("lmemo.forward").attr("size_of");
  }
  new (self) ForwardCache(max_entries, limit, std::move(weigh));
}

void init_forward_cache(nb::module_& m) {
  nb::class_<ForwardCache> cache(m, "ForwardCache", nb::type_slots(kSlots), nb::is_weak_referenceable(),
                                 "Values by any hashable key; the least recently used go first. Safe under "
                                 "threads; a hit takes no global lock.\n\n"
                                 "    cache = ForwardCache(maxsize=256, max_bytes=\"2GiB\")\n"
                                 "    value = cache.get(key)\n"
                                 "    if value is _MISS:\n"
                                 "        cache.put(key, compute())");
  cache
      .def("__init__", &make_cache, "maxsize"_a = 256, nb::kw_only(), "max_bytes"_a = nb::none(),
           "size_of"_a = nb::none(),
           nb::sig("def __init__(self, maxsize: int = 256, *, max_bytes: int | str | None = None, "
                   "size_of: Callable[[Any], int] | None = None) -> None"),
           "maxsize: entries.\n"
           "max_bytes: what the values may weigh together; None: no limit. A value that alone weighs more is "
           "not kept.\n"
           "size_of: weighs a value; the default is lmemo.forward.size_of.")
      .def("__len__", &ForwardCache::entries)
      .def("clear", &ForwardCache::clear, "Drops every entry.")
      .def_prop_ro("maxsize", &ForwardCache::max_entries, "The limit in entries.")
      .def_prop_ro(
          "max_bytes",
          [](const ForwardCache& self) {
            return self.max_bytes() == 0 ? std::nullopt : std::optional(self.max_bytes());
          },
          "The limit in bytes, or None.")
      .def_prop_ro("byte_count", &ForwardCache::byte_count,
                   "What the values weigh now; 0 if they are not weighed.")
      .def_prop_ro("evictions", &ForwardCache::evictions, "Entries that had to make room.");
  add_method(cache, kGet);
  add_method(cache, kPut);
  m.attr("_MISS") = nb::borrow(miss_sentinel());
}

}  // namespace lmemo::python
