// Words out. Data goes to standard output; notes, progress and errors go to standard error, where they cannot
// disturb a program that reads the data.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/progress_display.h"
#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo::cli {

enum class Style { bold, dim, green, yellow, red };

// Control characters made visible. Names and texts that come from a file could otherwise steer the terminal.
std::string printable(std::string_view text);

class Console {
 public:
  explicit Console(CliEnvironment& environment);

  bool is_json = false;
  bool is_quiet = false;
  void use_color(std::string_view choice);                       // auto, always, never
  std::string styled(Style style, std::string_view text) const;  // For data.

  void out(std::string_view data);
  void out(const JsonWriter& json);

  // One line each, to standard error. Quiet drops notes; warnings and errors are always shown. From any thread.
  void note(std::string_view text);
  void warn(std::string_view text);
  void error(std::string_view text);
  void hint(std::string_view text);  // What to do about an error; shown even if quiet.

  // For long work: shows how far it is, and stops it on Ctrl-C.
  Watch watch();
  void end_progress();

 private:
  void say(std::string_view label, Style style, std::string_view text);

  CliEnvironment& environment_;
  bool colors_output_ = false;
  bool colors_error_ = false;
  std::mutex mutex_;  // Guards everything below.
  ProgressDisplay progress_;
};

}  // namespace lmemo::cli
