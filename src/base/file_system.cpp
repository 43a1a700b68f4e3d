#include "base/file_system.h"

#include "base/own_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <set>
#include <system_error>

namespace lmemo {
namespace {

// Where the file system has no locks, a private file counts as abandoned when nobody wrote to it for so long.
constexpr int64_t kAbandonedSeconds = 3600;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  void release() { number_ = -1; }

 private:
  int number_;
};

Descriptor open_file(const Path& path, int flags, mode_t mode = 0) {
  return Descriptor(open_descriptor(path, flags | O_NOFOLLOW, mode));
}

// A lock of flock() belongs to the open file, which a forked child shares: it would stay locked while the child lives,
// although its owner let go or died. So a child closes at once what it got from its parent.
class LockedDescriptors {
 public:
  static LockedDescriptors& instance() {
    static LockedDescriptors* const all = [] {
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().close_in_child(); });
      return new LockedDescriptors;  // Never destroyed: fork() may come late.
    }();
    return *all;
  }
  // Held from opening a file to adding it, so that no fork comes in between.
  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }
  void add_locked(Descriptor* descriptor) { descriptors_.insert(descriptor); }
  void remove(Descriptor* descriptor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    descriptors_.erase(descriptor);
  }

 private:
  void close_in_child() {
    for (Descriptor* descriptor : descriptors_) descriptor->close();
    descriptors_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;  // Guards descriptors_.
  std::set<Descriptor*> descriptors_;
};

// A descriptor whose file is locked, in this process only.
class LockedDescriptor {
 public:
  // Requires: the lock of LockedDescriptors is held since before the file was opened.
  explicit LockedDescriptor(Descriptor descriptor) : descriptor_(std::move(descriptor)) {
    LockedDescriptors::instance().add_locked(&descriptor_);
  }
  ~LockedDescriptor() { LockedDescriptors::instance().remove(&descriptor_); }
  LockedDescriptor(const LockedDescriptor&) = delete;
  LockedDescriptor& operator=(const LockedDescriptor&) = delete;
  int number() const { return descriptor_.number(); }

 private:
  Descriptor descriptor_;
};

class RealMappedFile : public MappedFile {
 public:
  RealMappedFile(void* address, size_t byte_count) {
    bytes_ = {static_cast<const std::byte*>(address), byte_count};
  }
  ~RealMappedFile() override {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
};

// A whole file that no longer changes.
class RealWholeFile : public RealMappedFile {
 public:
  RealWholeFile(void* address, const struct stat& file, Path path)
      : RealMappedFile(address, static_cast<size_t>(file.st_size)),
        path_(std::move(path)),
        device_(file.st_dev),
        inode_(file.st_ino) {}
  ~RealWholeFile() override {
    if (std::byte* twin = twin_.load()) ::munmap(twin, bytes_.size());
  }

  OwnPart own_part(Bytes part) const override {
    if (part.data() < bytes_.data() || part.data() + part.size() > bytes_.data() + bytes_.size()) return {};
    std::call_once(twin_is_made_, [this] { make_twin(); });
    std::byte* const twin = twin_.load(std::memory_order_relaxed);
    return twin == nullptr ? OwnPart() : own_parts::take(twin + (part.data() - bytes_.data()), part);
  }

 private:
  // The file once more, privately: made when somebody first asks, because hardly anybody does.
  void make_twin() const {
    const Descriptor descriptor = open_file(path_, O_RDONLY | O_NONBLOCK);
    struct stat found;
    const bool is_same = descriptor.is_open() && ::fstat(descriptor.number(), &found) == 0 &&
                         found.st_dev == device_ && found.st_ino == inode_ &&
                         static_cast<size_t>(found.st_size) == bytes_.size();
    if (!is_same) return;
    void* twin = ::mmap(nullptr, bytes_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                        descriptor.number(), 0);
    if (twin != MAP_FAILED) twin_ = static_cast<std::byte*>(twin);
  }

  const Path path_;
  const dev_t device_;
  const ino_t inode_;
  mutable std::once_flag twin_is_made_;
  mutable std::atomic<std::byte*> twin_{nullptr};
};

Result<std::shared_ptr<const MappedFile>> map_descriptor(int descriptor, uint64_t byte_count,
                                                         const Path& path) {
  if (byte_count == 0) return std::shared_ptr<const MappedFile>(std::make_shared<RealMappedFile>(nullptr, 0));
  void* address = ::mmap(nullptr, byte_count, PROT_READ, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return errno_error(errno, "map", path);
  return std::shared_ptr<const MappedFile>(std::make_shared<RealMappedFile>(address, byte_count));
}

bool locks_are_missing(int error_number) {
  return error_number == ENOLCK || error_number == ENOSYS || error_number == EOPNOTSUPP ||
         error_number == EINVAL;
}

class RealWritableFile : public WritableFile {
 public:
  RealWritableFile(Descriptor descriptor, Path path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Status append(std::span<const Bytes> parts) override {
    std::array<iovec, 512> vectors;
    while (!parts.empty()) {
      const size_t count = std::min(parts.size(), vectors.size());
      for (size_t i = 0; i < count; ++i)
        vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
      LMEMO_TRY(write_all(vectors.data(), count));
      parts = parts.subspan(count);
    }
    return {};
  }

  Status truncate(uint64_t byte_count) override {
    if (::ftruncate(descriptor_.number(), static_cast<off_t>(byte_count)) != 0)
      return errno_error(errno, "truncate", path_);
    if (::lseek(descriptor_.number(), static_cast<off_t>(byte_count), SEEK_SET) < 0)
      return errno_error(errno, "seek in", path_);
    return {};
  }

  Status sync() override {
    if (::fdatasync(descriptor_.number()) != 0) return errno_error(errno, "sync", path_);
    return {};
  }

  void start_writeback([[maybe_unused]] uint64_t from, [[maybe_unused]] uint64_t byte_count) override {
#if defined(__linux__)
    ::sync_file_range(descriptor_.number(), static_cast<off64_t>(from), static_cast<off64_t>(byte_count),
                      SYNC_FILE_RANGE_WRITE);
#endif
  }

  Result<std::shared_ptr<const MappedFile>> map(uint64_t capacity) override {
    // A mapping holds on to the open file it was made from, and with it to the lock: also in a forked child, and as
    // long as somebody holds a view. So it gets an open file of its own.
    const Descriptor unlocked = open_file(path_, O_RDONLY);
    if (!unlocked.is_open()) return errno_error(errno, "open", path_);
    return map_descriptor(unlocked.number(), capacity, path_);
  }

 private:
  Status write_all(iovec* vectors, size_t count) {
    while (count > 0) {
      const ssize_t written = ::writev(descriptor_.number(), vectors, static_cast<int>(count));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno_error(errno, "write", path_);
      size_t left = static_cast<size_t>(written);
      while (count > 0 && left >= vectors->iov_len) left -= vectors->iov_len, ++vectors, --count;
      if (count > 0) {
        vectors->iov_base = static_cast<std::byte*>(vectors->iov_base) + left;
        vectors->iov_len -= left;
      }
    }
    return {};
  }

  const LockedDescriptor descriptor_;
  const Path path_;
};

class RealFileLock : public FileLock {
 public:
  explicit RealFileLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const LockedDescriptor descriptor_;
};

FileStatus status_of(const struct stat& from) {
  FileStatus status;
  status.type = S_ISREG(from.st_mode)   ? FileType::regular
                : S_ISDIR(from.st_mode) ? FileType::directory
                                        : FileType::other;
  status.byte_count = static_cast<uint64_t>(from.st_size);
  status.modified_ns = int64_t{from.st_mtim.tv_sec} * 1'000'000'000 + from.st_mtim.tv_nsec;
  status.inode = from.st_ino;
  return status;
}

// Another process may have renamed or removed the file between our open and our lock.
bool is_still_at(int descriptor, const Path& path) {
  struct stat ours, there;
  return ::fstat(descriptor, &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

class RealFileSystem : public FileSystem {
 public:
  Result<FileStatus> status(const Path& path) override {
    struct stat found;
    if (::lstat(path.c_str(), &found) == 0) return status_of(found);
    if (errno == ENOENT || errno == ENOTDIR) return FileStatus{};
    return errno_error(errno, "look at", path);
  }

  Result<std::vector<std::string>> list(const Path& directory) override {
    Descriptor descriptor = open_file(directory, O_RDONLY | O_DIRECTORY);
    if (!descriptor.is_open()) return errno_error(errno, "list", directory);
    DIR* stream = ::fdopendir(descriptor.number());
    if (stream == nullptr) return errno_error(errno, "list", directory);
    descriptor.release();  // closedir() closes it.
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int failure = errno;
    ::closedir(stream);
    if (failure != 0) return errno_error(failure, "list", directory);
    return names;
  }

  Result<std::shared_ptr<const MappedFile>> map(const Path& path) override {
    // O_NONBLOCK: a FIFO planted in the store must not hang us.
    const Descriptor descriptor = open_file(path, O_RDONLY | O_NONBLOCK);
    if (!descriptor.is_open()) {
      if (errno == ENOENT) return std::shared_ptr<const MappedFile>();
      return errno_error(errno, "open", path);
    }
    struct stat found;
    if (::fstat(descriptor.number(), &found) != 0) return errno_error(errno, "look at", path);
    if (!S_ISREG(found.st_mode))
      return Error{ErrorCode::io_error, "cannot open " + path.string() + ": not a regular file"};
    if (found.st_size == 0) return map_descriptor(descriptor.number(), 0, path);
    void* address =
        ::mmap(nullptr, static_cast<size_t>(found.st_size), PROT_READ, MAP_SHARED, descriptor.number(), 0);
    if (address == MAP_FAILED) return errno_error(errno, "map", path);
    return std::shared_ptr<const MappedFile>(std::make_shared<RealWholeFile>(address, found, path));
  }

  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    const auto no_fork = LockedDescriptors::instance().lock();
    Descriptor descriptor = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (!descriptor.is_open()) return errno_error(errno, "create", path);
    const bool is_locked = ::flock(descriptor.number(), LOCK_EX | LOCK_NB) == 0 || locks_are_missing(errno);
    if (is_locked && is_still_at(descriptor.number(), path))
      return std::unique_ptr<WritableFile>(std::make_unique<RealWritableFile>(std::move(descriptor), path));
    // Somebody tidying up took the empty file for abandoned before we held the lock.
    ::unlink(path.c_str());
    return Error{ErrorCode::busy, "cannot create " + path.string() + ": taken by another process"};
  }

  Result<std::unique_ptr<WritableFile>> take_over(const Path& path) override {
    const auto no_fork = LockedDescriptors::instance().lock();
    Descriptor descriptor = open_file(path, O_RDWR | O_NONBLOCK);
    if (!descriptor.is_open()) {
      if (errno == ENOENT) return std::unique_ptr<WritableFile>();
      return errno_error(errno, "open", path);
    }
    struct stat found;
    if (::fstat(descriptor.number(), &found) != 0) return errno_error(errno, "look at", path);
    if (!S_ISREG(found.st_mode))
      return Error{ErrorCode::io_error, "cannot open " + path.string() + ": not a regular file"};
    // What is written here would be written there as well.
    if (found.st_nlink > 1)
      return Error{ErrorCode::io_error,
                   "cannot take over " + path.string() + ": the file has another name elsewhere"};
    if (::flock(descriptor.number(), LOCK_EX | LOCK_NB) != 0) {
      const bool is_old = ::time(nullptr) - found.st_mtim.tv_sec > kAbandonedSeconds;
      if (!locks_are_missing(errno) || !is_old)
        return Error{ErrorCode::busy, "cannot take over " + path.string() + ": its writer is alive"};
    }
    if (!is_still_at(descriptor.number(), path)) return std::unique_ptr<WritableFile>();
    return std::unique_ptr<WritableFile>(std::make_unique<RealWritableFile>(std::move(descriptor), path));
  }

  Status make_directory(const Path& path) override {
    if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
    return errno_error(errno, "create the directory", path);
  }

  Status rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return errno_error(errno, "rename", from);
    return {};
  }

  Status remove(const Path& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error(errno, "remove", path);
    return {};
  }

  Status sync_directory(const Path& path) override {
    const Descriptor descriptor = open_file(path, O_RDONLY | O_DIRECTORY);
    if (!descriptor.is_open()) return errno_error(errno, "open", path);
    // Some file systems cannot sync a directory and say EINVAL; there is nothing more to be had from them.
    if (::fsync(descriptor.number()) != 0 && errno != EINVAL) return errno_error(errno, "sync", path);
    return {};
  }

  Result<std::unique_ptr<FileLock>> try_lock(const Path& path) override {
    const auto no_fork = LockedDescriptors::instance().lock();
    Descriptor descriptor = open_file(path, O_RDWR | O_CREAT, 0666);
    if (!descriptor.is_open()) return errno_error(errno, "lock", path);
    if (::flock(descriptor.number(), LOCK_EX | LOCK_NB) != 0 && !locks_are_missing(errno))
      return Error{ErrorCode::busy, "another process holds " + path.string()};
    return std::unique_ptr<FileLock>(std::make_unique<RealFileLock>(std::move(descriptor)));
  }
};

}  // namespace

FileSystem& real_file_system() {
  LockedDescriptors::
      instance();  // Whoever has handlers around fork() and locks before us registers them after ours.
  static RealFileSystem file_system;
  return file_system;
}

int open_descriptor(const Path& path, int flags, mode_t mode) {
  int number;
  do number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (number < 0 && errno == EINTR);
  if (number < 0 || number > STDERR_FILENO) return number;
  const int higher = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int failure = errno;
  ::close(number);
  errno = failure;
  return higher;
}

Error errno_error(int error_number, std::string_view doing, const Path& path) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return Error{is_full ? ErrorCode::no_space : ErrorCode::io_error,
               "cannot " + std::string(doing) + " " + path.string() + ": " +
                   std::generic_category().message(error_number)};
}

}  // namespace lmemo
