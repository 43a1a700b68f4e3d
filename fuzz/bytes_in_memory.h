// Fuzz bytes as a file that a segment can be read from: aligned as a mapping is, and of exactly their size, so that the
// sanitizer sees who reads past the end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file_system.h"

namespace lmemo::fuzz {

class FuzzFile : public MappedFile {
 public:
  explicit FuzzFile(Bytes bytes) : copy_(bytes.begin(), bytes.end()) { bytes_ = copy_; }

 private:
  std::vector<std::byte> copy_;  // operator new aligns to 16.
};

inline Bytes bytes_from(const uint8_t* data, size_t size) { return std::as_bytes(std::span(data, size)); }

inline void require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace lmemo::fuzz
