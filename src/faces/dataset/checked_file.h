// A file that is written once, from front to back, in blocks that are checksummed on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo::dataset {

inline constexpr size_t kCheckedBlockBytes = size_t{1} << 20;

class CheckedFile {
 public:
  static Result<std::unique_ptr<CheckedFile>> create(const std::filesystem::path& path);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  Status append(Bytes bytes);
  // What is buffered goes to the file; with `durable` to the disk. No more appends after that.
  Status finish(bool durable);

  uint64_t byte_count() const { return byte_count_; }
  uint64_t checksum() const { return checksum_; }

 private:
  CheckedFile(std::filesystem::path path, int number) : path_(std::move(path)), number_(number) {}
  Status write_block();

  const std::filesystem::path path_;
  const int number_;
  std::string block_;
  uint64_t byte_count_ = 0;
  uint64_t checksum_ = 0;
};

}  // namespace lmemo::dataset
