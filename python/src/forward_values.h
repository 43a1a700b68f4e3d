// Python values as bytes and back (faces/forward/value_codec.h). Exact types only: a subclass would not come back as what it was.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo::python {

// False if a part of the value has no codec, or cannot be read: it then stays in memory. Raises only what ends programs (KeyboardInterrupt).
bool encode_value(nanobind::handle value, bool as_float16, std::string& out);

// The value. An error (corruption, incompatible version) for bytes that hold none. Raises lmemo.Incompatible if it is of a class that is
// not registered, or that has other fields now.
Result<nanobind::object> decode_value(Bytes bytes);

}  // namespace lmemo::python
