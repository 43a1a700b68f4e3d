// A directory that a user named, with its links followed: who names a link means where it leads. What lies in such a directory
// is opened without following (file_system.h), so that a link planted there leads nowhere.
#pragma once

#include <filesystem>

namespace lmemo {

inline std::filesystem::path followed(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(directory, error);
  return error ? directory : real;
}

}  // namespace lmemo
