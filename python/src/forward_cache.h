// ForwardCache: values by key, least recently used first out, in entries and in bytes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "faces/sharded_lru.h"
#include "forward_key.h"
#include "python_mutex.h"

namespace lmemo::python {

// With the GIL whoever runs is alone, and no code of others runs inside the table. Without it every shard has its lock.
#ifdef Py_GIL_DISABLED
constexpr size_t kCacheShards = 16;
#else
constexpr size_t kCacheShards = 1;
#endif

struct CacheNode : LruLinks {
  CacheNode(const KeyView& view, PyObject* new_value) : key(view), value(Py_NewRef(new_value)) {
    hash = view.hash;
  }
  ~CacheNode() { Py_DECREF(value); }

  const OwnedKey key;
  PyObject* const value;
  std::string label;  // For the trace; may be missing.
};

class ForwardCache {
 public:
  ForwardCache(uint64_t max_entries, uint64_t max_bytes, nanobind::object size_of)
      : table_(max_entries, max_bytes), size_of_(std::move(size_of)) {}
  ~ForwardCache() { clear(); }
  ForwardCache(const ForwardCache&) = delete;
  ForwardCache& operator=(const ForwardCache&) = delete;

  // The value, as a new reference, or nullptr: a miss, or a Python exception. Calls see(label of the entry) under its lock.
  template <typename See>
  PyObject* find(const KeyView& key, uint64_t tick, See&& see) {
    PyObject* value = nullptr;
    bool meets_objects = !key.is_plain;
    const auto use = [&](CacheNode& node) {
      value = Py_NewRef(node.value);
      see(node.label);
    };
    if (!meets_objects) {
      const auto is_equal = [&](const CacheNode& node) {
        if (node.key.is_plain) [[likely]]
          return plain_equal(key, node.key);
        meets_objects = true;
        return false;
      };
      if (table_.find(key.hash, tick, is_equal, use)) [[likely]]
        return value;
    }
    if (!meets_objects) return nullptr;
    const std::optional<OwnedKey> known = equal_key_of(key);
    if (known)
      table_.find(
          key.hash, tick, [&](const CacheNode& node) { return node.key.is_same_object_as(*known); }, use);
    return value;
  }
  PyObject* find(const KeyView& key, uint64_t tick) {
    return find(key, tick, [](const std::string&) {});
  }

  // False with a Python exception.
  bool put(const KeyView& key, PyObject* value, uint64_t tick, std::string label = {});
  void clear() { delete_all(table_.take_all()); }

  uint64_t entries() const { return table_.entries(); }
  uint64_t byte_count() const { return table_.byte_count(); }
  uint64_t evictions() const { return table_.evictions(); }
  uint64_t max_entries() const { return table_.max_entries(); }
  uint64_t max_bytes() const { return table_.max_bytes(); }
  int traverse(visitproc visit, void* arg);
  void drop_objects();

 private:
  using Table = ShardedLru<CacheNode, PythonMutex, kCacheShards>;

  // The key in the table that equals this one, compared by the objects' own code, with no lock held. nullopt: none, or a Python exception.
  std::optional<OwnedKey> equal_key_of(const KeyView& key);
  bool put_among_objects(CacheNode* node, uint64_t tick);

  Table table_;
  nanobind::object size_of_;  // None: entries are not weighed.
};

// The sentinel that get() returns on a miss. Immortal.
PyObject* miss_sentinel();

}  // namespace lmemo::python
