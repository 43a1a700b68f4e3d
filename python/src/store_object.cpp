#include "store_object.h"

#include <set>

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// Never destroyed: stores may outlive static objects at exit.
struct LiveStores {
  PythonMutex mutex;  // Guards what follows.
  std::set<StoreObject*> objects;
};
LiveStores& live_stores() {
  static auto* const stores = new LiveStores;
  return *stores;
}

}  // namespace

StoreObject::StoreObject(std::shared_ptr<Store> store, std::shared_ptr<NoticeQueue> notices, std::string name,
                         bool is_read_only)
    : store_(std::move(store)),
      notices_(std::move(notices)),
      name_(std::move(name)),
      is_read_only_(is_read_only) {
  const PythonLock lock(live_stores().mutex);
  live_stores().objects.insert(this);
}

StoreObject::~StoreObject() {
  {
    const PythonLock lock(live_stores().mutex);
    live_stores().objects.erase(this);
  }
  store_.reset();
  deliver_notices();
}

void StoreObject::raise_closed() const {
  raise_error({ErrorCode::invalid_argument, "store " + name_ + " is closed; open it again to use it"});
}

void StoreObject::flush_or_notice(const std::shared_ptr<Store>& store) const {
  Status status;
  {
    const nb::gil_scoped_release released;
    status = store->flush();
  }
  if (!status.ok())
    notices_->push({status.error().code,
                    "store " + name_ + ": the last entries were not kept: " + status.error().message});
  deliver_notices();
}

void StoreObject::close() {
  std::shared_ptr<Store> store;
  {
    const PythonLock lock(mutex_);
    store.swap(store_);
  }
  if (store != nullptr) flush_or_notice(store);
}

void StoreObject::flush_all() {
  std::vector<std::shared_ptr<Store>> open;
  {
    const PythonLock lock(live_stores().mutex);
    for (const StoreObject* object : live_stores().objects)
      if (std::shared_ptr<Store> store = object->hold_if_open()) open.push_back(std::move(store));
  }
  const nb::gil_scoped_release released;
  for (const std::shared_ptr<Store>& store : open) static_cast<void>(store->flush());
}

}  // namespace lmemo::python
