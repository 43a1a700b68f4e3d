// lmemo.StoreBase and the two stores.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>

#include "base/home_directory.h"
#include "bindings.h"
#include "store_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

// The same place as that of the command line without --store and without a settings file.
std::filesystem::path default_directory() {
  if (const char* store = std::getenv("LMEMO_STORE"); store != nullptr && *store != '\0')
    return path_of(nb::module_::import_("os.path").attr("expanduser")(nb::str(store)));
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::filesystem::path(cache) / "lmemo";
  return home_directory().value_or(".") / ".cache" / "lmemo";
}

CheckPolicy check_policy_of(const std::string& check) {
  if (check == "every_find") return CheckPolicy::every_find;
  if (check == "first_find") return CheckPolicy::first_find;
  raise_error(
      {ErrorCode::invalid_argument, "check: \"" + check + "\"; expected \"every_find\" or \"first_find\""});
}

std::map<std::string, uint64_t> limits_of(nb::handle limits) {
  std::map<std::string, uint64_t> result;
  if (limits.is_none()) return result;
  for (const nb::handle item : limits.attr("items")())
    result[nb::cast<std::string>(item[0])] = byte_count_of(item[1], "max_bytes_by_kind");
  return result;
}

struct PythonOptions {
  nb::handle path, max_bytes, max_bytes_by_kind;
  bool read_only, create;
  std::string check;
  nb::handle segment_bytes;
  double publish_seconds, refresh_seconds;
};

void open_disk_store(DiskStoreObject* self, const PythonOptions& given) {
  const std::filesystem::path directory = given.path.is_none() ? default_directory() : path_of(given.path);
  StoreOptions options;
  options.max_bytes = byte_count_of(given.max_bytes, "max_bytes");
  options.max_bytes_by_kind = limits_of(given.max_bytes_by_kind);
  options.read_only = given.read_only;
  options.create = given.create;
  options.check = check_policy_of(given.check);
  options.segment_bytes = byte_count_of(given.segment_bytes, "segment_bytes");
  options.publish_seconds = given.publish_seconds;
  options.refresh_seconds = given.refresh_seconds;
  auto notices = std::make_shared<NoticeQueue>();
  options.on_notice = [notices](const Notice& notice) { notices->push(notice); };

  std::optional<Result<std::unique_ptr<Store>>> opened;
  {
    const nb::gil_scoped_release released;
    opened.emplace(open_store(directory, std::move(options)));
  }
  notices->deliver();
  std::shared_ptr<Store> store = value_or_raise(std::move(*opened));
  new (self) DiskStoreObject(std::move(store), std::move(notices), directory, given.read_only);
}

nb::object repr_of(nb::handle self, const std::string& what) {
  const auto& store = nb::cast<const StoreObject&>(self);
  return nb::str("<lmemo.{} {}{}>")
      .format(self.type().attr("__name__"), what, store.is_closed() ? ", closed" : "");
}

void init_base(nb::module_& m) {
  StoreClass base(m, "StoreBase",
                  "What Store and MemoryStore have in common: annotate with this whatever takes either.\n\n"
                  "All methods may be called from any thread.");
  def_entries(base);
  def_upkeep(base);
  base.def("close", &StoreObject::close,
           "Publishes what was put, and lets go of the files. Hits stay valid. A failure to publish is "
           "logged, not "
           "raised; call flush() first if you must know.")
      .def_prop_ro("is_closed", &StoreObject::is_closed, "close() was called.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](StoreObject& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void init_disk_store(nb::module_& m) {
  nb::class_<DiskStoreObject, StoreObject>(
      m, "Store",
      "What was computed once, in a directory that several processes may use at once.\n\n"
      "    with lmemo.Store() as store:\n"
      "        hit = store.find(key)\n"
      "        if hit is None:\n"
      "            store.put(key, compute())\n\n"
      "Without a path the store is LMEMO_STORE, else lmemo in the user's cache directory.")
      .def(
          "__init__",
          [](DiskStoreObject* self, nb::handle path, nb::handle max_bytes, nb::handle max_bytes_by_kind,
             bool read_only, bool create, std::string check, nb::handle segment_bytes, double publish_seconds,
             double refresh_seconds) {
            open_disk_store(self, {path, max_bytes, max_bytes_by_kind, read_only, create, std::move(check),
                                   segment_bytes, publish_seconds, refresh_seconds});
          },
          "path"_a = nb::none(), nb::kw_only(), "max_bytes"_a = kDefaultMaxBytes,
          "max_bytes_by_kind"_a = nb::none(), "read_only"_a = false, "create"_a = true,
          "check"_a = "first_find", "segment_bytes"_a = StoreOptions{}.segment_bytes,
          "publish_seconds"_a = StoreOptions{}.publish_seconds,
          "refresh_seconds"_a = StoreOptions{}.refresh_seconds,
          nb::sig("def __init__(self, path: str | os.PathLike[str] | None = None, *, max_bytes: int | str = "
                  "'10GiB', "
                  "max_bytes_by_kind: Mapping[str, int | str] | None = None, read_only: bool = False, "
                  "create: bool = True, check: Literal['first_find', 'every_find'] = 'first_find', "
                  "segment_bytes: int | str = '64MiB', publish_seconds: float = 1.0, refresh_seconds: float "
                  "= 0.05) "
                  "-> None"),
          "max_bytes, max_bytes_by_kind: least recently used entries go when the store grows past it; 0: no "
          "limit.\n"
          "read_only: nothing is written; put() returns False.\n"
          "create: make the directory if it is not there.\n"
          "check: \"first_find\" checks the checksum of an entry at its first find by this object and again "
          "after "
          "its file changed, \"every_find\" at every find.\n"
          "segment_bytes, publish_seconds: what was put becomes visible to other processes in batches that "
          "are "
          "at most this large and this old at the next put.\n"
          "refresh_seconds: how old a miss may be before the directory is looked at again.")
      .def_prop_ro(
          "path", [](const DiskStoreObject& self) { return path_to_python(self.directory()); },
          nb::sig("def path(self) -> pathlib.Path"), "The directory.")
      .def_prop_ro("read_only", &DiskStoreObject::is_read_only, "Nothing is written.")
      .def(
          "__repr__",
          [](nb::handle self) {
            return repr_of(self, "at " + nb::cast<const DiskStoreObject&>(self).directory().string());
          },
          nb::sig("def __repr__(self) -> str"));
}

void init_stores(nb::module_& m) {
  m.def(
      "default_store_directory", [] { return path_to_python(default_directory()); },
      nb::sig("def default_store_directory() -> pathlib.Path"), "Where the store is if nobody says where.");
  init_base(m);
  init_disk_store(m);
  nb::class_<MemoryStoreObject, StoreObject>(
      m, "MemoryStore",
      "The same without a disk. Past max_bytes (0: no limit) the least recently used entries go.")
      .def(
          "__init__",
          [](MemoryStoreObject* self, nb::handle max_bytes) {
            new (self) MemoryStoreObject(make_memory_store(byte_count_of(max_bytes, "max_bytes")),
                                         std::make_shared<NoticeQueue>(), "in memory");
          },
          "max_bytes"_a = 0, nb::sig("def __init__(self, max_bytes: int | str = 0) -> None"))
      .def(
          "__repr__", [](nb::handle self) { return repr_of(self, "in memory"); },
          nb::sig("def __repr__(self) -> str"));
  m.def("flush_all", &StoreObject::flush_all, "Publishes what was put into any open store.");
}

}  // namespace lmemo::python
