// The one place where a lmemo::Error becomes a Python exception.
#pragma once

#include <utility>

#include "lmemo/result.h"

namespace lmemo::python {

// lmemo.Corruption, lmemo.IoError, …: one class per code, defined in lmemo/_errors.py. An interruption is a
// KeyboardInterrupt. Needs the GIL.
[[noreturn]] void raise_error(const Error& error);

inline void raise_if_failed(const Status& status) {
  if (!status.ok()) raise_error(status.error());
}

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise_error(result.error());
  return std::move(result).value();
}

}  // namespace lmemo::python
