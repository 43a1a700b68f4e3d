// The one place where a lmemo::Error becomes a Python exception, and an exception an Error.
#pragma once

#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

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

// What an exception says, in a line. Where it was raised interests who works on lmemo, not who runs it.
Error error_of(const nanobind::python_error& error);

template <typename T>
struct AsResult {
  using Type = Result<T>;
};
template <typename T>
struct AsResult<Result<T>> {
  using Type = Result<T>;
};

// Calls Python, with the GIL, without letting an exception of it through.
template <typename Call>
auto asked(Call call) -> typename AsResult<std::invoke_result_t<Call>>::Type {
  const nanobind::gil_scoped_acquire with_gil;
  try {
    return call();
  } catch (const nanobind::python_error& error) {
    return error_of(error);
  } catch (const std::exception& error) {
    return Error{ErrorCode::incompatible, error.what()};
  }
}

}  // namespace lmemo::python
