// What only Python has: HuggingFace's engine, for files that ours refuses, and the way to HuggingFace's hub.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "lmemo/dataset.h"
#include "lmemo/tokenizer.h"

namespace lmemo::python {

// `engine` is a lmemo._core.NativeTokenizer, whose tokenizer this is, or a lmemo._huggingface.HuggingFaceEngine, which any thread may then
// call. Needs the GIL.
std::shared_ptr<const Tokenizer> tokenizer_of_engine(nanobind::handle engine);

// The rest is called without the GIL.
// Ours if it takes the file or the directory, else HuggingFace's if that is installed; else the refusal.
Result<std::shared_ptr<const Tokenizer>> load_with_fallback(const std::filesystem::path& path);
std::string huggingface_version();
Result<std::filesystem::path> fetch_from_hub(const std::string& name);

}  // namespace lmemo::python
