// Looks into any file that lmemo writes, damaged or not, without opening a store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/key.h"
#include "lmemo/result.h"

namespace lmemo {

struct InspectedRecord {
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;
  uint64_t value_bytes = 0;
  uint64_t value_offset = 0;
  int64_t written_ns = 0;
  bool is_erasure = false;
  Digest digest;
  std::optional<Key> key;  // Absent for erasures and unreadable fields.
};

struct InspectedBlock {
  std::string name;  // "header", "records", "index", "fields", "kinds", "footer"
  uint64_t offset = 0;
  uint64_t byte_count = 0;
  bool is_sound = false;
  std::string note;  // What is wrong with it, or empty.
};

struct InspectedFile {
  uint64_t file_bytes = 0;
  uint32_t version = 0;
  uint64_t nonce = 0;
  bool is_sealed = false;  // Has a sound footer and index.
  std::vector<InspectedBlock> blocks;
  std::vector<InspectedRecord> records;  // The sound ones, by offset.
  std::vector<std::string> problems;
};

// An error only if the file cannot be read or is nothing that lmemo writes.
Result<InspectedFile> inspect_file(const std::filesystem::path& file);

}  // namespace lmemo
