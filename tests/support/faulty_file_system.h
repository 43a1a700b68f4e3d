#pragma once

// A file system whose nth call fails, once or from then on: a full disk, a dying one, no descriptors left, rights taken
// away. Wraps any other.
//
//   FaultyFileSystem files(real_file_system());
//   files.fail_from(17, Fault::no_space, /*once=*/true);
//   ... work ...
//   files.calls();        // How many there were.

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/file_system.h"

namespace lmemo::test {

enum class Fault { no_space, io, descriptors, rights, short_write };

inline const char* name_of(Fault fault) {
  const char* const names[] = {"ENOSPC", "EIO", "EMFILE", "EACCES", "short write"};
  return names[static_cast<int>(fault)];
}

class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& below) : below_(below) {}

  // Counted from the first call of all, which is 1.
  void fail_from(uint64_t call, Fault fault, bool once) {
    fail_from_ = call;
    fault_ = fault;
    is_once_ = once;
  }
  void heal() { fail_from_ = UINT64_MAX; }
  uint64_t calls() const { return calls_; }
  bool has_failed() const { return has_failed_; }
  // What failed first, for messages.
  const std::string& first_failure() const { return first_failure_; }
  // Told when a sync of this file failed.
  std::function<void(const Path&)> on_failed_sync;

  Result<FileStatus> status(const Path& path) override {
    if (must_fail("status", path)) return error("look at", path);
    return below_.status(path);
  }
  Result<std::vector<std::string>> list(const Path& directory) override {
    if (must_fail("list", directory)) return error("list", directory);
    return below_.list(directory);
  }
  Result<std::shared_ptr<const MappedFile>> map(const Path& path) override {
    if (must_fail("map", path)) return error("map", path);
    return below_.map(path);
  }
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    if (must_fail("create", path)) return error("create", path);
    return wrapped(below_.create(path), path);
  }
  Result<std::unique_ptr<WritableFile>> take_over(const Path& path) override {
    if (must_fail("take over", path)) return error("open", path);
    return wrapped(below_.take_over(path), path);
  }
  Status make_directory(const Path& path) override {
    if (must_fail("make directory", path)) return error("create the directory", path);
    return below_.make_directory(path);
  }
  Status rename(const Path& from, const Path& to) override {
    if (must_fail("rename", from)) return error("rename", from);
    return below_.rename(from, to);
  }
  Status remove(const Path& path) override {
    if (must_fail("remove", path)) return error("remove", path);
    return below_.remove(path);
  }
  Status sync_directory(const Path& path) override {
    if (must_fail("sync directory", path)) return error("sync", path);
    return below_.sync_directory(path);
  }
  Result<std::unique_ptr<FileLock>> try_lock(const Path& path) override {
    if (must_fail("lock", path)) return error("lock", path);
    return below_.try_lock(path);
  }

 private:
  class FaultyFile : public WritableFile {
   public:
    FaultyFile(FaultyFileSystem& owner, std::unique_ptr<WritableFile> below, Path path)
        : owner_(owner), below_(std::move(below)), path_(std::move(path)) {}

    Status append(std::span<const Bytes> parts) override {
      if (!owner_.must_fail("append", path_)) return below_->append(parts);
      if (owner_.fault_ == Fault::short_write) write_half(parts);
      return owner_.error("write", path_);
    }
    Status truncate(uint64_t byte_count) override {
      if (owner_.must_fail("truncate", path_)) return owner_.error("truncate", path_);
      return below_->truncate(byte_count);
    }
    Status sync() override {
      if (!owner_.must_fail("sync", path_)) return below_->sync();
      if (owner_.on_failed_sync) owner_.on_failed_sync(path_);
      return owner_.error("sync", path_);
    }
    void start_writeback(uint64_t from, uint64_t byte_count) override {
      below_->start_writeback(from, byte_count);
    }
    Result<std::shared_ptr<const MappedFile>> map(uint64_t capacity) override {
      if (owner_.must_fail("map for writing", path_)) return owner_.error("map", path_);
      return below_->map(capacity);
    }

   private:
    void write_half(std::span<const Bytes> parts) {
      size_t total = 0;
      for (const Bytes part : parts) total += part.size();
      size_t left = total / 2 + 1;
      for (const Bytes part : parts) {
        const Bytes some = part.first(std::min(left, part.size()));
        [[maybe_unused]] const Status written = below_->append({&some, 1});
        left -= some.size();
        if (left == 0) return;
      }
    }

    FaultyFileSystem& owner_;
    const std::unique_ptr<WritableFile> below_;
    const Path path_;
  };

  Result<std::unique_ptr<WritableFile>> wrapped(Result<std::unique_ptr<WritableFile>> file,
                                                const Path& path) {
    if (!file.ok() || !*file) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<FaultyFile>(*this, std::move(*file), path));
  }

  bool must_fail(const char* what, const Path& path) {
    const bool fails = ++calls_ == fail_from_ || (calls_ > fail_from_ && !is_once_);
    if (fails && !has_failed_) first_failure_ = std::string(what) + " " + path.string();
    has_failed_ |= fails;
    return fails;
  }
  Error error(std::string_view doing, const Path& path) const {
    const int numbers[] = {ENOSPC, EIO, EMFILE, EACCES, ENOSPC};
    return errno_error(numbers[static_cast<int>(fault_)], doing, path);
  }

  FileSystem& below_;
  uint64_t calls_ = 0;
  uint64_t fail_from_ = UINT64_MAX;
  Fault fault_ = Fault::io;
  bool is_once_ = true;
  bool has_failed_ = false;
  std::string first_failure_;
};

}  // namespace lmemo::test
