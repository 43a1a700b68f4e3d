#include "sources/source_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_system.h"
#include "base/utf8.h"

namespace lmemo {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kBinaryLookBytes = 1024;
constexpr int kReadAttempts = 5;

// Reads to the end, wherever that is by now. False: errno says why.
bool read_all(int descriptor, uint64_t expected, std::string& bytes) {
  bytes.resize(expected + 1);  // One more, to see the end without another call.
  size_t filled = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    filled += static_cast<size_t>(count);
    if (filled < bytes.size()) {
      // A short read of a regular file is its end, or a signal: the next one tells.
      if (count == 0 || filled == expected) break;
      continue;
    }
    bytes.resize(bytes.size() * 2);
  }
  bytes.resize(filled);
  return true;
}

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return {static_cast<uint64_t>(status.st_size),
          status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec * kNsPerSecond + status.st_ctim.tv_nsec, status.st_ino};
}

Result<SourceRoot> SourceRoot::open(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno_error(errno, "open", directory);
  return SourceRoot(descriptor, directory);
}

SourceRoot::SourceRoot(SourceRoot&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), directory_(std::move(other.directory_)) {}

SourceRoot& SourceRoot::operator=(SourceRoot&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(directory_, other.directory_);
  return *this;
}

SourceRoot::~SourceRoot() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int SourceRoot::open_beneath(std::string_view path, int flags) const {
  static std::atomic<bool> has_openat2{true};
  const std::string name = path.empty() ? "." : std::string(path);
  if (has_openat2.load(std::memory_order_relaxed)) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const long descriptor = ::syscall(SYS_openat2, descriptor_, name.c_str(), &how, sizeof how);
    if (descriptor >= 0) return static_cast<int>(descriptor);
    // Old kernels, and filters that know no openat2.
    if (errno != ENOSYS && errno != EPERM) return -1;
    has_openat2 = false;
  }
  return ::openat(descriptor_, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);
}

Result<FileStamp> SourceRoot::read(std::string_view path, std::string& bytes) const {
  const auto failed = [&](int error) { return errno_error(error, "read", directory_ / std::string(path)); };
  // O_NONBLOCK: a pipe that took the file's place must not hold us up.
  const int descriptor = open_beneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return failed(errno);
  Result<FileStamp> result = failed(EBUSY);
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    struct stat before, after;
    if (::fstat(descriptor, &before) != 0) {
      result = failed(errno);
      break;
    }
    if (!S_ISREG(before.st_mode)) {
      result = failed(EINVAL);
      break;
    }
    if (!read_all(descriptor, static_cast<uint64_t>(before.st_size), bytes) ||
        ::fstat(descriptor, &after) != 0) {
      result = failed(errno);
      break;
    }
    // Written to while it was read: what came out may never have been its content.
    if (stamp_of(before) == stamp_of(after) && bytes.size() == static_cast<uint64_t>(after.st_size)) {
      result = stamp_of(after);
      break;
    }
  }
  ::close(descriptor);
  return result;
}

bool looks_binary(std::string_view bytes) {
  return std::memchr(bytes.data(), 0, std::min(bytes.size(), kBinaryLookBytes)) != nullptr;
}

bool is_utf8(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at < end) {
    // Most of a source tree is ASCII: 32 bytes at a time.
    while (end - at >= 32) {
      uint64_t words[4];
      std::memcpy(words, at, sizeof words);
      if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) != 0) break;
      at += 32;
    }
    while (at < end && static_cast<signed char>(*at) >= 0) ++at;
    while (at < end && static_cast<signed char>(*at) < 0) {
      const size_t length = utf8_length({at, std::min<size_t>(4, static_cast<size_t>(end - at))});
      if (length == 0) return false;
      at += length;
    }
  }
  return true;
}

std::string_view normalized_text(std::string_view bytes, std::string& scratch) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (bytes.empty() || std::memchr(bytes.data(), '\r', bytes.size()) == nullptr) return bytes;
  scratch.resize(bytes.size());
  char* to = scratch.data();
  for (const char *from = bytes.data(), *const end = from + bytes.size(); from < end;) {
    const auto* found = static_cast<const char*>(std::memchr(from, '\r', static_cast<size_t>(end - from)));
    const char* const stop = found == nullptr ? end : found;
    std::memcpy(to, from, static_cast<size_t>(stop - from));
    to += stop - from;
    from = stop;
    if (found == nullptr) break;
    *to++ = '\n';
    from += from + 1 < end && from[1] == '\n' ? 2 : 1;
  }
  return {scratch.data(), static_cast<size_t>(to - scratch.data())};
}

}  // namespace lmemo
