// The part of a BackendInstrumentation that survives the process: results in an lmemo store.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "forward_key.h"
#include "lmemo/key.h"
#include "store_object.h"

namespace lmemo::python {

class Persistence {
 public:
  // `store` is a lmemo.Store or lmemo.MemoryStore.
  Persistence(nanobind::object store, bool uses_float16);

  enum class Found { yes, no, unreadable };
  // What is stored under the key. Raises if the value is of a class that is not registered.
  Found find(const KeyView& key, nanobind::object& value) const;

  // Stores the value; false if it can only be kept in memory. With float16 `value` becomes what a later find gives.
  bool put(const KeyView& key, nanobind::object& value) const;

  void flush() const;
  const nanobind::object& store_object() const { return store_object_; }
  bool uses_float16() const { return uses_float16_; }

 private:
  nanobind::object store_object_;
  const StoreObject* store_;
  const bool uses_float16_;
};

// nullopt if a part of the key has no place in a store.
std::optional<Key> store_key_of(const KeyView& key, bool uses_float16);

}  // namespace lmemo::python
