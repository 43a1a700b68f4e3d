// A whole file as one document: plain, gzip or zstd, checked to be UTF-8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lmemo/result.h"

namespace lmemo {

// A byte-order mark at the start is left out. invalid_argument if the text is longer, or not UTF-8: the message says
// where. Memory is taken as bytes come, never by what a header claims.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 30);

}  // namespace lmemo
