// Guards what the GIL guards, where there is none. With the GIL whoever runs is alone, and it is nothing.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>

namespace lmemo::python {

#ifdef Py_GIL_DISABLED
struct PythonMutex {
  PyMutex mutex{};
  void lock() { PyMutex_Lock(&mutex); }
  void unlock() { PyMutex_Unlock(&mutex); }
};
#else
struct PythonMutex {
  void lock() {}
  void unlock() {}
};
#endif
using PythonLock = std::lock_guard<PythonMutex>;

}  // namespace lmemo::python
