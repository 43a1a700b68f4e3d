// A store as Python holds it: it can be closed while other threads still use it, and it carries the notices.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "errors.h"
#include "lmemo/store.h"
#include "notices.h"
#include "python_mutex.h"

namespace lmemo::python {

// With the GIL nobody can close the store while somebody else uses it. Without it whoever uses the store holds it.
#ifdef Py_GIL_DISABLED
using StoreInUse = std::shared_ptr<Store>;
#else
using StoreInUse = Store*;
#endif

class StoreObject {
 public:
  StoreObject(std::shared_ptr<Store> store, std::shared_ptr<NoticeQueue> notices, std::string name,
              bool is_read_only = false);
  ~StoreObject();
  StoreObject(const StoreObject&) = delete;
  StoreObject& operator=(const StoreObject&) = delete;

  // "the store /path", for people.
  const std::string& name() const { return name_; }
  bool is_closed() const {
    const PythonLock lock(mutex_);
    return store_ == nullptr;
  }
  bool is_read_only() const { return is_read_only_; }

  // For short calls that keep the GIL. Raises if it is closed.
  StoreInUse open() const {
#ifdef Py_GIL_DISABLED
    return hold();
#else
    if (store_ == nullptr) raise_closed();
    return store_.get();
#endif
  }
  // For calls that give up the GIL.
  std::shared_ptr<Store> hold() const {
    std::shared_ptr<Store> store = hold_if_open();
    if (store == nullptr) raise_closed();
    return store;
  }
  // Null if it is closed.
  std::shared_ptr<Store> hold_if_open() const {
    const PythonLock lock(mutex_);
    return store_;
  }
  void deliver_notices() const { notices_->deliver(); }

  // Runs `body(store)` without the GIL, delivers notices, and returns what it returned.
  template <typename Body>
  auto without_gil(Body&& body) const {
    const std::shared_ptr<Store> store = hold();
    std::optional<decltype(body(*store))> result;
    {
      const nanobind::gil_scoped_release released;
      result.emplace(body(*store));
    }
    deliver_notices();
    return std::move(*result);
  }

  // Publishes what was put. A failure is a notice, as with put: closing a cache ends no training run.
  void close();
  // The same for every store that is open, without closing it: for the end of the process.
  static void flush_all();

 private:
  [[noreturn]] void raise_closed() const;
  void flush_or_notice(const std::shared_ptr<Store>& store) const;

  mutable PythonMutex mutex_;  // Guards store_.
  std::shared_ptr<Store> store_;
  const std::shared_ptr<NoticeQueue> notices_;
  const std::string name_;
  const bool is_read_only_;
};

class DiskStoreObject : public StoreObject {
 public:
  DiskStoreObject(std::shared_ptr<Store> store, std::shared_ptr<NoticeQueue> notices,
                  std::filesystem::path directory, bool is_read_only)
      : StoreObject(std::move(store), std::move(notices), directory.string(), is_read_only),
        directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }

 private:
  const std::filesystem::path directory_;
};

class MemoryStoreObject : public StoreObject {
  using StoreObject::StoreObject;
};

using StoreClass = nanobind::class_<StoreObject>;
void def_entries(StoreClass& store);  // store_entries.cpp: find, put, erase, scan, explain
void def_upkeep(StoreClass& store);   // store_upkeep.cpp: stats, verify, repair, prune, …
void init_disk_store(nanobind::module_& m);

}  // namespace lmemo::python
