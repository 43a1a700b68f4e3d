#include "base/home_directory.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace lmemo {

std::optional<std::filesystem::path> home_directory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  passwd user{};
  passwd* found = nullptr;
  std::vector<char> room(size_t{16} << 10);
  if (::getpwuid_r(::getuid(), &user, room.data(), room.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  if (user.pw_dir == nullptr || *user.pw_dir != '/') return std::nullopt;
  return user.pw_dir;
}

}  // namespace lmemo
