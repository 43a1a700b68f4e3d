// Claims on parts of a work that several processes share: a lock on a range of bytes of an empty file. A claim ends with its
// process, whatever ended that, so a dead owner blocks nobody. Advice, not a guarantee: where the file system knows no
// locks, everybody gets every claim.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace lmemo {

class RangeClaims {
 public:
  // Null if the file cannot be made.
  static std::unique_ptr<RangeClaims> open(const std::filesystem::path& file);
  ~RangeClaims();
  RangeClaims(const RangeClaims&) = delete;
  RangeClaims& operator=(const RangeClaims&) = delete;

  // False if another process, or another object, holds a part of it.
  bool try_claim(uint64_t first, uint64_t count);
  void release(uint64_t first, uint64_t count);

 private:
  explicit RangeClaims(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace lmemo
