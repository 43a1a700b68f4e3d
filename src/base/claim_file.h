// Who works on what, between processes: numbers are claimed by locking the bytes of an empty file at their places. The lock goes with the
// process that holds it, however it ends, so a dead owner never blocks anybody; nothing is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lmemo/result.h"

namespace lmemo {

class ClaimFile {
 public:
  // Makes the file if it is not there.
  static Result<ClaimFile> open(const std::filesystem::path& path);
  ~ClaimFile();
  ClaimFile(ClaimFile&& other) noexcept;
  ClaimFile& operator=(ClaimFile&&) = delete;

  // False if another ClaimFile object, of this process or of another, holds it. What cannot be locked (a file system without locks) counts as
  // ours: two may then do the same work, and nothing is lost but time.
  bool try_claim(uint64_t first, uint64_t count = 1);
  void release(uint64_t first, uint64_t count = 1);

 private:
  explicit ClaimFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace lmemo
