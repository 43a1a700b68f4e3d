// One file of a source tree, read whole and once: bytes and stamp belong together, or it is read again.
//
//   LMEMO_ASSIGN(const SourceRoot root, SourceRoot::open(listing.root()));
//   std::string bytes;
//   LMEMO_ASSIGN(const FileStamp stamp, root.read("src/main.c", bytes));
//   if (looks_binary(bytes)) …
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lmemo/result.h"
#include "sources/directory_walk.h"

struct stat;

namespace lmemo {

FileStamp stamp_of(const struct stat& status);

// A directory by its descriptor, so that a path is resolved from here and cannot leave it.
class SourceRoot {
 public:
  static Result<SourceRoot> open(const std::filesystem::path& directory);
  SourceRoot(SourceRoot&& other) noexcept;
  SourceRoot& operator=(SourceRoot&& other) noexcept;
  ~SourceRoot();

  // Neither follows a symbolic link anywhere in `path`. A file that is no regular one is an error.
  Result<FileStamp> read(std::string_view path, std::string& bytes) const;
  // -1 and errno, as openat.
  int open_beneath(std::string_view path, int flags) const;
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  SourceRoot(int descriptor, std::filesystem::path directory)
      : descriptor_(descriptor), directory_(std::move(directory)) {}
  int descriptor_ = -1;
  std::filesystem::path directory_;
};

// A NUL in the first KiB, as git and grep have it.
bool looks_binary(std::string_view bytes);
// Well-formed from end to end.
bool is_utf8(std::string_view bytes);
// Drops a byte order mark, and makes CRLF and CR line feeds; `scratch` holds the result where something changed.
std::string_view normalized_text(std::string_view bytes, std::string& scratch);

}  // namespace lmemo
