// The settings in force, and where each one comes from.
// Flags win over the environment, that over lmemo.toml found upward, that over the user's own file, that over defaults.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/command_parser.h"
#include "lmemo/result.h"
#include "lmemo/store.h"

namespace lmemo::cli {

struct Setting {
  std::string key;
  std::string text;
  std::string origin;  // "--store", "LMEMO_STORE", "/home/a/lmemo.toml:3", "default"
};

struct ConfigCandidate {
  std::filesystem::path path;
  std::string role;  // "project", "user"
  bool was_read = false;
};

class Settings {
 public:
  std::filesystem::path store() const;
  std::string color() const;
  // Limits and checks as set; everything else as the store has it.
  StoreOptions store_options() const;

  // By key.
  const std::vector<Setting>& all() const { return all_; }
  const Setting* find(std::string_view key) const;
  // The files that were looked for, strongest first.
  const std::vector<ConfigCandidate>& files() const { return files_; }

 private:
  friend Result<Settings> load_settings(const Arguments& arguments, const CliEnvironment& environment,
                                        const std::string& store_variable);
  std::vector<Setting> all_;
  std::vector<ConfigCandidate> files_;
};

// `store_variable` names the store before LMEMO_STORE does, for a command that has one of its own.
Result<Settings> load_settings(const Arguments& arguments, const CliEnvironment& environment,
                               const std::string& store_variable = {});

}  // namespace lmemo::cli
