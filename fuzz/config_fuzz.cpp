// Any bytes as a settings file: parsed and checked without a crash, and every value that passes is usable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/settings_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo::cli;
  const auto values = read_config({reinterpret_cast<const char*>(data), size}, "lmemo.toml");
  if (!values.ok()) {
    if (values.error().message.find("lmemo.toml") != 0) std::abort();
    return 0;
  }
  for (const ConfigValue& value : *values) {
    const SettingSpec* spec = find_setting(value.key);
    if (!spec || complaint_about(*spec, value.text) || value.line == 0) std::abort();
  }
  return 0;
}
