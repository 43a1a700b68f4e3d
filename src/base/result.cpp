#include "lmemo/result.h"

namespace lmemo {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::io_error: return "io_error";
    case ErrorCode::corruption: return "corruption";
    case ErrorCode::incompatible: return "incompatible";
    case ErrorCode::busy: return "busy";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::interrupted: return "interrupted";
  }
  return "unknown";
}

}  // namespace lmemo
