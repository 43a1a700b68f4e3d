// All disk access of the store goes through here, so that a test can put in a file system that fails at the nth
// call or forgets whatever was not synced. Nothing here follows a symbolic link in the last part of a path.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/own_part.h"
#include "lmemo/result.h"

namespace lmemo {

using Path = std::filesystem::path;

enum class FileType { missing, regular, directory, other };  // A symbolic link is other.

struct FileStatus {
  FileType type = FileType::missing;
  uint64_t byte_count = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;
};

// The bytes of a file in memory, for as long as somebody holds this, even after the file was removed.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  // A view of a file that still grows reaches past its end: look only at what was appended.
  Bytes bytes() const { return bytes_; }
  // Some of bytes() for whoever wants to write there without changing the file. Empty where that is not possible, or if somebody holds
  // some of it already. Must not outlive this.
  virtual OwnPart own_part(Bytes) const { return {}; }

 protected:
  Bytes bytes_;
};

// A file that one writer appends to. It is locked while open, which tells everyone that its writer lives.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends all parts. After an error the end of the file is anybody's guess: truncate() or give the file up.
  virtual Status append(std::span<const Bytes> parts) = 0;
  virtual Status truncate(uint64_t byte_count) = 0;
  // After this returned ok, the bytes survive a power cut (the name only after sync_directory).
  virtual Status sync() = 0;
  // A hint: start writing these bytes to the disk now, so that sync() has less to wait for.
  virtual void start_writeback(uint64_t from, uint64_t byte_count) = 0;
  virtual Result<std::shared_ptr<const MappedFile>> map(uint64_t capacity) = 0;
};

// Held while it lives; gone with the process.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<FileStatus> status(const Path& path) = 0;
  virtual Result<std::vector<std::string>> list(const Path& directory) = 0;
  // Null if there is no such file. Anything but a regular file is an error.
  virtual Result<std::shared_ptr<const MappedFile>> map(const Path& path) = 0;

  // A new file; an existing one is an error. busy if somebody who tidies up was quicker: try another name.
  virtual Result<std::unique_ptr<WritableFile>> create(const Path& path) = 0;
  // A file that a dead writer left behind. busy if its writer lives, null if the file is gone.
  virtual Result<std::unique_ptr<WritableFile>> take_over(const Path& path) = 0;

  virtual Status make_directory(const Path& path) = 0;  // Fine if it is there; parents must be.
  virtual Status rename(const Path& from, const Path& to) = 0;
  virtual Status remove(const Path& path) = 0;  // Fine if it is gone.
  virtual Status sync_directory(const Path& path) = 0;

  // busy if somebody else holds it.
  virtual Result<std::unique_ptr<FileLock>> try_lock(const Path& path) = 0;
};

FileSystem& real_file_system();

// open(2) with O_CLOEXEC for files that are written to. Never one of the first three numbers: where a process has closed its
// standard streams, whatever is printed there would land in the file.
int open_descriptor(const Path& path, int flags, mode_t mode = 0);

// io_error, or no_space where errno says so: "cannot write PATH: No space left on device".
Error errno_error(int error_number, std::string_view doing, const Path& path);

}  // namespace lmemo
