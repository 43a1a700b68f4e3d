// An engine of Python's as a Tokenizer: HuggingFace's, for files that ours refuses.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "lmemo/tokenizer.h"

namespace lmemo::python {

// `engine` is a lmemo._core.NativeTokenizer, whose tokenizer this is, or a lmemo._huggingface.HuggingFaceEngine, which any thread may then
// call. Needs the GIL.
std::shared_ptr<const Tokenizer> tokenizer_of_engine(nanobind::handle engine);

}  // namespace lmemo::python
