#include "base/range_claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace lmemo {
namespace {

// Of the open file, not of the process: two objects in one process exclude each other as well.
int set_lock(int descriptor, short type, uint64_t first, uint64_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  return ::fcntl(descriptor, F_OFD_SETLK, &lock);
}

}  // namespace

std::unique_ptr<RangeClaims> RangeClaims::open(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  return descriptor < 0 ? nullptr : std::unique_ptr<RangeClaims>(new RangeClaims(descriptor));
}

RangeClaims::~RangeClaims() { ::close(descriptor_); }

bool RangeClaims::try_claim(uint64_t first, uint64_t count) {
  return set_lock(descriptor_, F_WRLCK, first, count) == 0 || (errno != EAGAIN && errno != EACCES);
}

void RangeClaims::release(uint64_t first, uint64_t count) { set_lock(descriptor_, F_UNLCK, first, count); }

}  // namespace lmemo
