// Where a user's files are, also where no HOME is set: in cron jobs, systemd services and containers.
#pragma once

#include <filesystem>
#include <optional>

namespace lmemo {

// HOME, else what the password database says; nothing where it does not know this user.
std::optional<std::filesystem::path> home_directory();

}  // namespace lmemo
