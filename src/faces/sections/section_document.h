// Which sources a path on the command line, or from Python, means: a directory or file itself, or what a .dlm document names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lmemo/sections.h"

namespace lmemo {

inline constexpr uint64_t kDefaultPruneDays = 90;

struct SectionDocument {
  std::string id;  // dlm_id; empty for what is no document.
  std::vector<SectionSource> sources;
  std::optional<uint64_t> sequence_len;
  std::optional<bool> cache_enabled;
  std::optional<uint64_t> cache_max_bytes;
  std::optional<uint64_t> prune_older_than_days;
  std::vector<std::string> warnings;
};

bool is_document(const std::filesystem::path& path);
// Paths are relative to the document; ~ is `home`. Strict: one that leaves the document's directory is an error.
Result<SectionDocument> read_document(const std::filesystem::path& path, const std::filesystem::path& home);

}  // namespace lmemo
