#pragma once

// A directory of its own for one test, removed with everything in it at the end.
//
//   const TempDirectory directory;
//   write_file(directory.path() / "a.seg", bytes);

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace lmemo::test {

class TempDirectory {
 public:
  // Throws std::filesystem::filesystem_error when no directory can be made: the test cannot go on.
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lmemo-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::filesystem::filesystem_error("mkdtemp", pattern,
                                              std::error_code(errno, std::generic_category()));
    path_ = pattern;
  }

  ~TempDirectory() {
    std::error_code ignored;
    // A test may have taken the write permission from directories; without it nothing in them can be removed.
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    for (std::filesystem::recursive_directory_iterator it(path_, ignored), end; it != end;
         it.increment(ignored))
      if (it->is_directory(ignored) && !it->is_symlink(ignored))
        std::filesystem::permissions(it->path(), std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }

  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace lmemo::test
