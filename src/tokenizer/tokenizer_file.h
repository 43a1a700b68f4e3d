// Files that tokenizers are read from.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_system.h"
#include "lmemo/result.h"

namespace lmemo::tokenizer {

// Links are followed: the hub's cache is full of them.
Result<std::shared_ptr<const MappedFile>> mapped_file(const std::filesystem::path& path);

}  // namespace lmemo::tokenizer
