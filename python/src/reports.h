// What a store tells, as values that outlive the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lmemo/store.h"

namespace lmemo::python {

// lmemo::Progress borrows its texts.
struct ProgressRecord {
  std::string phase;
  uint64_t done = 0;
  uint64_t total = 0;
  std::string unit;
};

// lmemo::EntryInfo is valid only while scan() visits it.
struct Entry {
  Digest digest;
  std::string kind;
  uint64_t value_bytes = 0;
  uint64_t stored_bytes = 0;
  int64_t written_ns = 0;
  int64_t accessed_ns = 0;
  std::optional<Key> key;  // Absent if its fields cannot be read.
};

}  // namespace lmemo::python
