// The compiled tokenizer as Python holds it.
#pragma once

#include <memory>

#include "lmemo/tokenizer.h"

namespace lmemo::python {

// The native tokenizer never changes, which Python has no word for.
struct NativeTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
};

}  // namespace lmemo::python
