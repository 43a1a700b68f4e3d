// Files that tokenizers are read from, and the engines for them.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_system.h"
#include "lmemo/result.h"
#include "tokenizer/reference/loader.h"

namespace lmemo::tokenizer {

// The quickest engine that does what the file says.
std::shared_ptr<const Tokenizer> make_engine(LoadedFile file);

// Links are followed: the hub's cache is full of them.
Result<std::shared_ptr<const MappedFile>> mapped_file(const std::filesystem::path& path);

}  // namespace lmemo::tokenizer
