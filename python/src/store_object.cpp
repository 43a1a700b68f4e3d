#include "store_object.h"

#include <set>

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// Guarded by the GIL. Never destroyed: stores may outlive static objects at exit.
std::set<StoreObject*>& live_stores() {
  static auto* const stores = new std::set<StoreObject*>;
  return *stores;
}

}  // namespace

StoreObject::StoreObject(std::shared_ptr<Store> store, std::shared_ptr<NoticeQueue> notices, std::string name,
                         bool is_read_only)
    : store_(std::move(store)),
      notices_(std::move(notices)),
      name_(std::move(name)),
      is_read_only_(is_read_only) {
  live_stores().insert(this);
}

StoreObject::~StoreObject() {
  live_stores().erase(this);
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
  const std::shared_ptr<Store> store = std::exchange(store_, nullptr);
  if (store != nullptr) flush_or_notice(store);
}

void StoreObject::flush_all() {
  std::vector<std::shared_ptr<Store>> open;
  for (const StoreObject* object : live_stores())
    if (object->store_ != nullptr) open.push_back(object->store_);
  const nb::gil_scoped_release released;
  for (const std::shared_ptr<Store>& store : open) static_cast<void>(store->flush());
}

}  // namespace lmemo::python
