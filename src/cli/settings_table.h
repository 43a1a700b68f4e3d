// Every setting there is: where it may be set, what it may hold, what it is by default.
// To add one, add a row in settings_table.cpp; the section of the file is the part of the key before the dot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "lmemo/result.h"

namespace lmemo::cli {

enum class SettingType {
  path,
  byte_limit,
  choice,
  option
};  // option: as the command's option of that name takes it.

struct SettingSpec {
  std::string key;  // "limits.*" stands for every name in [limits].
  SettingType type = SettingType::choice;
  std::string option;    // The global option without dashes, or empty.
  std::string variable;  // The environment variable, or empty.
  std::vector<std::string> choices;
  std::string default_text;
  std::string help;
};

const std::vector<SettingSpec>& setting_specs();
const SettingSpec* find_setting(std::string_view key);

// What is wrong with a value, as a text that follows "KEY: ", or nothing.
std::optional<std::string> complaint_about(const SettingSpec& spec, const std::string& value);

// The values of one file as checked texts. An unknown key or a bad value is an error that names file, line and way out.
struct ConfigValue {
  std::string key;
  std::string text;
  uint32_t line = 0;
};
Result<std::vector<ConfigValue>> read_config(std::string_view bytes, const std::string& file);

}  // namespace lmemo::cli
