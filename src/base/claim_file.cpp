#include "base/claim_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file_system.h"

namespace lmemo {
namespace {

// Bound to the open file, not to the process: two threads with a file of their own each exclude one another too.
bool set_lock(int descriptor, short type, uint64_t first, uint64_t count) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  // A lock ends at INT64_MAX.
  lock.l_start = static_cast<off_t>(std::min<uint64_t>(first & INT64_MAX, INT64_MAX - count));
  lock.l_len = static_cast<off_t>(count);
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

Result<ClaimFile> ClaimFile::open(const std::filesystem::path& path) {
  const int descriptor = open_descriptor(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
  if (descriptor < 0) return errno_error(errno, "open", path);
  return ClaimFile(descriptor);
}

ClaimFile::~ClaimFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ClaimFile::ClaimFile(ClaimFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

bool ClaimFile::try_claim(uint64_t first, uint64_t count) {
  if (set_lock(descriptor_, F_WRLCK, first, count)) return true;
  return errno != EAGAIN && errno != EACCES;
}

void ClaimFile::release(uint64_t first, uint64_t count) { set_lock(descriptor_, F_UNLCK, first, count); }

}  // namespace lmemo
