// The methods that every program uses: find, put, erase, scan, explain.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "long_work.h"
#include "reports.h"
#include "store_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// A batch of put_many: large enough to pay for giving up the GIL, small enough to hold at once.
constexpr size_t kBatchItems = 1024;
constexpr size_t kBatchBytes = size_t{16} << 20;

const Key& checked_key(nb::handle key, const char* where) {
  const Key* result = nullptr;
  if (nb::try_cast(key, result) && result != nullptr) return *result;
  PyErr_Format(PyExc_TypeError, "%s: expected a lmemo.Key, found %.200s", where, Py_TYPE(key.ptr())->tp_name);
  throw nb::python_error();
}

// Keeps the GIL: it is quicker than giving it up.
std::optional<Hit> find(const StoreObject& self, const Key& key) {
  std::optional<Hit> hit = self.open()->find(key.digest());
  self.deliver_notices();
  return hit;
}

bool contains(const StoreObject& self, const Key& key) {
  const bool is_there = self.open()->contains(key.digest());
  self.deliver_notices();
  return is_there;
}

nb::list find_many(const StoreObject& self, const nb::iterable& keys) {
  std::vector<Digest> digests;
  for (const nb::handle key : keys) digests.push_back(checked_key(key, "find_many").digest());
  std::vector<std::optional<Hit>> hits = self.without_gil([&](Store& store) {
    std::vector<std::optional<Hit>> found;
    found.reserve(digests.size());
    for (const Digest& digest : digests) found.push_back(store.find(digest));
    return found;
  });
  nb::list result;
  for (std::optional<Hit>& hit : hits) result.append(nb::cast(std::move(hit)));
  return result;
}

// A lost chance is False; the store has sent its notice. Who opened a store read-only knows. What only a programmer
// can do wrong is raised.
bool was_stored(const StoreObject& self, const Status& status) {
  if (status.ok()) return true;
  if (self.is_read_only()) return false;
  if (status.error().code == ErrorCode::invalid_argument) raise_error(status.error());
  return false;
}

bool put(const StoreObject& self, const Key& key, nb::handle value) {
  const BufferView view(value);
  return was_stored(self, self.without_gil([&](Store& store) { return store.put(key, view.bytes()); }));
}

class PutBatch {
 public:
  explicit PutBatch(const StoreObject& store) : store_(store) {}

  void add(nb::handle key, nb::handle value) {
    const Key& key_of_item = checked_key(key, "put_many");
    const Bytes bytes = views_.emplace_back(value).bytes();
    keys_.append(key);
    items_.push_back({&key_of_item, bytes});
    byte_count_ += bytes.size();
    if (items_.size() >= kBatchItems || byte_count_ >= kBatchBytes) write();
  }
  void write() {
    if (items_.empty()) return;
    all_stored_ &=
        was_stored(store_, store_.without_gil([&](Store& store) { return store.put_many(items_); }));
    items_.clear();
    views_.clear();
    keys_ = nb::list();
    byte_count_ = 0;
  }
  bool all_stored() const { return all_stored_; }

 private:
  const StoreObject& store_;
  bool all_stored_ = true;
  nb::list keys_;  // Keeps them alive.
  std::vector<BufferView> views_;
  std::vector<Item> items_;
  size_t byte_count_ = 0;
};

bool put_many(const StoreObject& self, nb::handle pairs) {
  static_cast<void>(self.open());
  PutBatch batch(self);
  const nb::object iterable = nb::hasattr(pairs, "items") ? pairs.attr("items")() : nb::borrow(pairs);
  for (const nb::handle pair : iterable) {
    const nb::tuple both(nb::borrow(pair));
    if (both.size() != 2) throw nb::value_error("put_many: expected pairs of a Key and a bytes-like object");
    batch.add(both[0], both[1]);
  }
  batch.write();
  return batch.all_stored();
}

void flush(const StoreObject& self) {
  raise_if_failed(self.without_gil([](Store& store) { return store.flush(); }));
}

bool erase(const StoreObject& self, const Key& key) {
  return value_or_raise(self.without_gil([&](Store& store) { return store.erase(key.digest()); }));
}

ScanFilter filter_of(nb::handle kind, nb::handle fields, nb::handle named) {
  ScanFilter filter;
  if (!kind.is_none()) {
    if (!PyUnicode_Check(kind.ptr())) throw nb::type_error("kind: expected str or None");
    filter.kind = utf8_of(kind);
    if (filter.kind.empty()) throw nb::value_error("kind: expected a name; None stands for every kind");
  }
  filter.fields = fields_of(fields, named);
  return filter;
}

Entry entry_of(const EntryInfo& info) {
  Entry entry{info.digest,     std::string(info.kind), info.value_bytes, info.stored_bytes,
              info.written_ns, info.accessed_ns,       std::nullopt};
  if (Result<Key> key = info.key(); key.ok()) entry.key = std::move(key).value();
  return entry;
}

nb::list scan(const StoreObject& self, nb::handle kind, nb::handle fields, const nb::kwargs& named) {
  const ScanFilter filter = filter_of(kind, fields, named);
  const std::shared_ptr<Store> store = self.hold();
  std::vector<Entry> entries;
  const Status status = run_with_result(nb::none(), [&](const Watch& watch) {
    return store->scan(filter, [&](const EntryInfo& info) {
      entries.push_back(entry_of(info));
      return !watch.stopped();
    });
  });
  self.deliver_notices();
  raise_if_failed(status);
  nb::list result;
  for (Entry& entry : entries) result.append(nb::cast(std::move(entry)));
  return result;
}

RemovalReport erase_matching(const StoreObject& self, nb::handle kind, nb::handle fields, nb::handle progress,
                             const nb::kwargs& named) {
  const ScanFilter filter = filter_of(kind, fields, named);
  if (filter.kind.empty() && filter.fields.empty())
    raise_error({ErrorCode::invalid_argument,
                 "erase_matching: neither a kind nor a field is given; clear() erases all"});
  const std::shared_ptr<Store> store = self.hold();
  Result<RemovalReport> report =
      run_with_result(progress, [&](const Watch& watch) { return store->erase_matching(filter, watch); });
  self.deliver_notices();
  return value_or_raise(std::move(report));
}

Explanation explain(const StoreObject& self, const Key& key) {
  return value_or_raise(self.without_gil([&](Store& store) { return store.explain(key); }));
}

}  // namespace

void def_entries(StoreClass& store) {
  store
      .def(
          "find", &find, "key"_a, nb::sig("def find(self, key: Key, /) -> Hit | None"),
          "The entry, or None. Its checksum has been checked; a damaged entry is a miss, counted and logged.")
      .def("find_many", &find_many, "keys"_a,
           nb::sig("def find_many(self, keys: Iterable[Key]) -> list[Hit | None]"),
           "What find() gives for each key, in their order; other threads run meanwhile.")
      .def("contains", &contains, "key"_a, nb::sig("def contains(self, key: Key, /) -> bool"),
           "True if find() would look at an entry; its checksum is not checked.")
      .def("__contains__", &contains, "key"_a, nb::sig("def __contains__(self, key: Key, /) -> bool"))
      .def("put", &put, "key"_a, "value"_a, nb::sig("def put(self, key: Key, value: BytesLike, /) -> bool"),
           "Keeps the bytes under the key; a later put of the same key wins. False if they could not be kept "
           "(full "
           "disk, no permission, read-only store): the cause is logged once, and your work goes on.")
      .def(
          "put_many", &put_many, "pairs"_a,
          nb::sig(
              "def put_many(self, pairs: Mapping[Key, BytesLike] | Iterable[tuple[Key, BytesLike]]) -> bool"),
          "Puts every pair, with fewer steps. True if all of them were kept.")
      .def("flush", &flush,
           "When this returns, everything put or erased before survives power loss and is visible to "
           "everyone. "
           "Raises lmemo.Error if that cannot be promised.")
      .def("erase", &erase, "key"_a, nb::sig("def erase(self, key: Key, /) -> bool"),
           "Removes the entry. True if it was there.")
      .def("erase_matching", &erase_matching, "kind"_a = nb::none(), "fields"_a = nb::none(), nb::kw_only(),
           "progress"_a = nb::none(), "named"_a,
           nb::sig("def erase_matching(self, kind: str | None = None, fields: Mapping[str, FieldInput] | "
                   "None = None, "
                   "*, progress: Callable[[Progress], object] | None = None, **named: FieldInput) -> "
                   "RemovalReport"),
           "Removes every entry of this kind that has all of these fields. A field called kind, fields or "
           "progress "
           "goes into `fields`.")
      .def("scan", &scan, "kind"_a = nb::none(), "fields"_a = nb::none(), "named"_a,
           nb::sig("def scan(self, kind: str | None = None, fields: Mapping[str, FieldInput] | None = None, "
                   "**named: FieldInput) -> list[Entry]"),
           "The entries of this kind (None: all) that have all of these fields, in no particular order. A "
           "field "
           "called kind or fields goes into `fields`.")
      .def("explain", &explain, "key"_a, nb::sig("def explain(self, key: Key, /) -> Explanation"),
           "Why find(key) misses: the nearest entry, and the fields in which it differs.");
}

}  // namespace lmemo::python
