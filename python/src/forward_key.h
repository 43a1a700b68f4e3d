// Keys of the forward cache: any hashable Python object, or the four parts of a call, which are never packed into a tuple.
//
// (op, view_id, prompt, top_k) as a tuple and as four parts are the same key. A key is the whole prompt, compared by content; its hash only
// finds the place.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>

namespace lmemo::python {

constexpr int kCallParts = 4;

inline bool is_str(PyObject* object) {
  if (PyUnicode_CheckExact(object)) return true;
  // A subclass that compares as str does.
  return PyUnicode_Check(object) && Py_TYPE(object)->tp_hash == PyUnicode_Type.tp_hash &&
         Py_TYPE(object)->tp_richcompare == PyUnicode_Type.tp_richcompare;
}

// Plain objects are compared without running anybody's code, so they may be compared under a lock.
inline bool is_plain(PyObject* object, int depth = 0) {
  if (is_str(object) || PyLong_CheckExact(object) || object == Py_None || PyBool_Check(object) ||
      PyFloat_CheckExact(object) || PyBytes_CheckExact(object))
    return true;
  if (!PyTuple_CheckExact(object) || depth == 8) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_plain(PyTuple_GET_ITEM(object, i), depth + 1)) return false;
  return true;
}

// Requires: both are plain, and were hashed.
inline bool plain_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (PyUnicode_Check(a) && PyUnicode_Check(b)) {
    const Py_ssize_t length = PyUnicode_GET_LENGTH(a);
    return length == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b),
                       static_cast<size_t>(length) * PyUnicode_KIND(a)) == 0;
  }
  const int is_equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (is_equal < 0) PyErr_Clear();
  return is_equal == 1;
}

// Steps of a hash over several parts.
inline uint64_t mix(uint64_t hash, uint64_t part) {
  hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}
inline uint64_t last_mix(uint64_t hash) {
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 32);
}

// Borrowed: whoever made it keeps the objects alive.
struct KeyView {
  PyObject* part[kCallParts] = {};
  int count = 0;
  bool is_plain = true;
  uint64_t hash = 0;

  // False, with a Python exception, if something cannot be hashed.
  static bool of_call(PyObject* op, PyObject* view_id, PyObject* prompt, PyObject* top_k, KeyView& key) {
    key.part[0] = op;
    key.part[1] = view_id;
    key.part[2] = prompt;
    key.part[3] = top_k;
    key.count = kCallParts;
    uint64_t hash = 0;
    for (PyObject* part : key.part) {
      const Py_hash_t part_hash = PyObject_Hash(part);
      if (part_hash == -1) return false;
      hash = mix(hash, static_cast<uint64_t>(part_hash));
      key.is_plain &= python::is_plain(part);
    }
    key.hash = last_mix(hash);
    return true;
  }

  static bool of_object(PyObject* object, KeyView& key) {
    if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == kCallParts)
      return of_call(PyTuple_GET_ITEM(object, 0), PyTuple_GET_ITEM(object, 1), PyTuple_GET_ITEM(object, 2),
                     PyTuple_GET_ITEM(object, 3), key);
    const Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) return false;
    key.part[0] = object;
    key.count = 1;
    key.is_plain = python::is_plain(object);
    key.hash = last_mix(mix(1, static_cast<uint64_t>(hash)));
    return true;
  }
};

// The same, owning its parts.
struct OwnedKey {
  PyObject* part[kCallParts] = {};
  int count = 0;
  bool is_plain = true;
  uint64_t key_hash = 0;

  OwnedKey() = default;
  explicit OwnedKey(const KeyView& key) : count(key.count), is_plain(key.is_plain), key_hash(key.hash) {
    for (int i = 0; i < count; ++i) part[i] = Py_NewRef(key.part[i]);
  }
  OwnedKey(const OwnedKey& other) : count(other.count), is_plain(other.is_plain), key_hash(other.key_hash) {
    for (int i = 0; i < count; ++i) part[i] = Py_NewRef(other.part[i]);
  }
  OwnedKey& operator=(const OwnedKey&) = delete;
  ~OwnedKey() {
    for (int i = 0; i < count; ++i) Py_DECREF(part[i]);
  }

  KeyView view() const {
    KeyView key;
    for (int i = 0; i < count; ++i) key.part[i] = part[i];
    key.count = count;
    key.is_plain = is_plain;
    key.hash = key_hash;
    return key;
  }
  bool is_same_object_as(const OwnedKey& other) const {
    return count == other.count && std::memcmp(part, other.part, sizeof part) == 0;
  }
};

// Requires: both are plain.
inline bool plain_equal(const KeyView& a, const OwnedKey& b) {
  if (a.count != b.count) return false;
  for (int i = a.count - 1; i >= 0; --i)  // The prompt differs first.
    if (!plain_equal(a.part[i], b.part[i])) return false;
  return true;
}

// Runs the objects' own comparison. 1, 0, or -1 with a Python exception.
inline int any_equal(const KeyView& a, const OwnedKey& b) {
  if (a.count != b.count) return 0;
  for (int i = 0; i < a.count; ++i) {
    const int is_equal = PyObject_RichCompareBool(b.part[i], a.part[i], Py_EQ);
    if (is_equal != 1) return is_equal;
  }
  return 1;
}

}  // namespace lmemo::python
