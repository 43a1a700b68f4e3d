// A value, or the reason why there is none. Nothing in lmemo throws across its border.
//
//   Result<Tokens> tokens_of(const Section& section) {
//     LMEMO_ASSIGN(const Bytes text, read_file(section.path));  // Passes an error up.
//     LMEMO_TRY(check(text));
//     return encode(text);
//   }
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace lmemo {

enum class ErrorCode {
  invalid_argument,  // The caller asked for something that cannot be.
  io_error,          // The operating system said no.
  corruption,        // Bytes on disk are not what was written.
  incompatible,      // Written by another version or by another program.
  busy,              // Somebody else holds what is needed.
  no_space,          // The disk or the limit is full.
  interrupted,       // The caller asked to stop.
};

std::string_view name_of(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // What, where, found, expected, way out.

  // "io_error: cannot write …"
  std::string describe() const { return std::string(name_of(code)) + ": " + message; }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return assert(!ok()), *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return assert(error_), *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

#define LMEMO_CONCAT_INNER(a, b) a##b
#define LMEMO_CONCAT(a, b) LMEMO_CONCAT_INNER(a, b)

// Returns the error of `expression` from the enclosing function, if it has one.
#define LMEMO_TRY(expression)                                                              \
  do {                                                                                     \
    if (auto lmemo_status = (expression); !lmemo_status.ok()) return lmemo_status.error(); \
  } while (false)

// Declares `declaration` with the value of `expression`, or returns its error.
#define LMEMO_ASSIGN(declaration, expression) \
  LMEMO_ASSIGN_INNER(LMEMO_CONCAT(lmemo_result_, __LINE__), declaration, expression)
#define LMEMO_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return result.error();                  \
  declaration = std::move(result).value()

}  // namespace lmemo
