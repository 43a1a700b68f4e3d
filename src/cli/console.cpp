#include "cli/console.h"

#include <algorithm>

#include "base/clock.h"

namespace lmemo::cli {
namespace {

std::string_view escape_of(Style style) {
  switch (style) {
    case Style::bold: return "\x1b[1m";
    case Style::dim: return "\x1b[2m";
    case Style::green: return "\x1b[32m";
    case Style::yellow: return "\x1b[33m";
    case Style::red: return "\x1b[31m";
  }
  return "";
}

constexpr std::string_view kPlain = "\x1b[0m";

bool is_dumb_terminal(const CliEnvironment& environment) {
  return environment.variable && environment.variable("TERM").value_or("") == "dumb";
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string safe;
  safe.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    const unsigned next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
    // 0xC2 0x80…0x9F are the control characters of Latin-1 in UTF-8; some terminals obey them.
    const bool is_latin_control = c == 0xC2 && next >= 0x80 && next <= 0x9F;
    if (c >= 0x20 && c != 0x7F && !is_latin_control) {
      safe += text[at];
      continue;
    }
    safe += "\\x";
    safe += kHex[c >> 4];
    safe += kHex[c & 15];
  }
  return safe;
}

Console::Console(CliEnvironment& environment)
    : environment_(environment),
      progress_(environment.error_is_terminal && !is_dumb_terminal(environment), environment.terminal_columns,
                [this](std::string_view text) {
                  if (environment_.write_error) environment_.write_error(text);
                }) {
  use_color("auto");
}

void Console::use_color(std::string_view choice) {
  const bool may_color = choice == "auto" && !is_dumb_terminal(environment_);
  colors_output_ = choice == "always" || (may_color && environment_.output_is_terminal);
  colors_error_ = choice == "always" || (may_color && environment_.error_is_terminal);
}

std::string Console::styled(Style style, std::string_view text) const {
  if (!colors_output_) return std::string(text);
  return std::string(escape_of(style)) + std::string(text) + std::string(kPlain);
}

void Console::out(std::string_view data) {
  const std::lock_guard lock(mutex_);
  progress_.hide();
  if (environment_.write_output) environment_.write_output(data);
}

void Console::out(const JsonWriter& json) { out(json.text() + "\n"); }

void Console::say(std::string_view label, Style style, std::string_view text) {
  std::string line;
  if (!label.empty()) {
    if (colors_error_) line += escape_of(style);
    line += label;
    if (colors_error_) line += kPlain;
    line += ": ";
  }
  // A message may have several lines.
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    line += printable(text.substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  const std::lock_guard lock(mutex_);
  progress_.hide();
  if (environment_.write_error) environment_.write_error(line);
}

void Console::note(std::string_view text) {
  if (!is_quiet) say("", Style::dim, text);
}
void Console::warn(std::string_view text) { say("warning", Style::yellow, text); }
void Console::error(std::string_view text) { say("error", Style::red, text); }
void Console::hint(std::string_view text) { say("", Style::dim, text); }

Watch Console::watch() {
  Watch watch;
  watch.should_stop = environment_.interrupted;
  if (!is_quiet) {
    watch.on_progress = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      progress_.show(progress, coarse_monotonic_ns());
    };
  }
  return watch;
}

void Console::end_progress() {
  const std::lock_guard lock(mutex_);
  progress_.hide();
}

}  // namespace lmemo::cli
