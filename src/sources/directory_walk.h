// The files of a directory, as the globs want them, sorted by path, with what the file system says of each. No file is
// opened. Several threads look at different directories.
//
//   LMEMO_ASSIGN(const SourceListing listing, walk_sources("/home/a/project", {.include = {"**/*.py"}}));
//   for (size_t i = 0; i < listing.size(); ++i) read(listing.path(i));
//
// Symbolic links are never followed: what they name inside the root is met at its own place, so loops and escapes cannot
// happen. They are counted, and those that leave the root are named. Devices, sockets and pipes are left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo {

// What changes when a file does. Two stamps that are equal say the same content, but for the racy case: stat_memory.h.
struct FileStamp {
  uint64_t byte_count = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;  // ctime: nobody can set it back.
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

struct WalkOptions {
  std::vector<std::string> include = {};  // Globs over the relative path; none: everything.
  std::vector<std::string> exclude = {};  // One that matches a directory leaves out all that is in it.
  bool use_default_excludes = true;       // default_excludes() of glob.h.
  std::filesystem::path own_directory =
      {};                               // The store: no part of a source that it lies in. Links resolved.
  bool use_ignore_files = false;        // Honour .gitignore files.
  uint64_t max_files = 0;               // The first so many by path; 0: all.
  uint64_t max_bytes_per_file = 0;      // Larger ones are left out; 0: none are.
  std::filesystem::path boundary = {};  // Links that leave it are named; empty: the root itself.
  unsigned threads = 0;                 // 0: one per core.
};

struct WalkCounts {
  uint64_t directories = 0;
  uint64_t excluded = 0;  // Files and directories that a glob or an ignore file left out.
  uint64_t too_large = 0;
  uint64_t over_limit = 0;  // Behind max_files.
  uint64_t symlinks = 0;
  uint64_t special = 0;     // Devices, sockets, pipes.
  uint64_t unreadable = 0;  // Directories that may not be read, files that vanished.
};

class SourceListing {
 public:
  size_t size() const { return files_.size(); }
  // Relative to root(), with forward slashes; the name alone if the root is a file itself.
  std::string_view path(size_t index) const {
    return {paths_.data() + files_[index].path_at, files_[index].path_bytes};
  }
  const FileStamp& stamp(size_t index) const { return files_[index].stamp; }
  uint64_t total_bytes() const { return total_bytes_; }

  // Absolute, symbolic links resolved. Where the root is a file: its directory.
  const std::filesystem::path& root() const { return root_; }
  const WalkCounts& counts() const { return counts_; }
  // Symbolic links whose target is outside the root, and directories that cannot be read: the first of each, relative.
  const std::vector<std::string>& escaping_links() const { return escaping_links_; }
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  friend class DirectoryWalk;
  struct File {
    uint64_t path_at = 0;
    uint32_t path_bytes = 0;
    FileStamp stamp;
  };
  std::filesystem::path root_;
  std::string paths_;
  std::vector<File> files_;
  uint64_t total_bytes_ = 0;
  WalkCounts counts_;
  std::vector<std::string> escaping_links_;
  std::vector<std::string> unreadable_;
};

// An error if the root is not there, is neither a directory nor a file, or a glob makes no sense.
Result<SourceListing> walk_sources(const std::filesystem::path& root, const WalkOptions& options = {},
                                   const Watch& watch = {});

}  // namespace lmemo
