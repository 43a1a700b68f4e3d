// Who works on what, between processes: a number is claimed by locking one byte of an empty file at that place. The lock goes with the
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
  bool try_claim(uint64_t number);
  void release(uint64_t number);

 private:
  explicit ClaimFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace lmemo
