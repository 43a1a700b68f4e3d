// The YAML at the top of a document (.dlm), between two lines of three dashes:
//
//   ---
//   dlm_id: 01KPQ1FF
//   training:
//     sequence_len: 2048
//     sources_policy: strict
//     sources:
//       - path: ~/project
//         include: ["**/*.py"]
//     cache: {enabled: true, max_bytes: 10GiB, prune_older_than_days: 90}
//   ---
//
// Keys that are not known here are somebody else's, but for those of a source and of the cache: these are named, since a
// mistyped one would change what is read. A known one of the wrong type is an error with its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/result.h"

namespace lmemo {

struct DocumentSourceEntry {
  std::string path;
  std::vector<std::string> include, exclude;
  std::optional<uint64_t> max_bytes_per_file, max_files;
};

struct Frontmatter {
  std::string id;  // dlm_id; may be empty.
  std::vector<DocumentSourceEntry> sources;
  bool is_strict = false;
  std::optional<uint64_t> sequence_len;
  std::optional<bool> cache_enabled;
  std::optional<uint64_t> cache_max_bytes;
  std::optional<uint64_t> prune_older_than_days;
  std::vector<std::string> unknown;  // In words: the place, the key, and what is known there.
};

// `document` is the whole text. Without frontmatter everything is empty.
Result<Frontmatter> parse_frontmatter(std::string_view document);

}  // namespace lmemo
