#include "cli/progress_display.h"

#include <algorithm>

#include "base/units.h"

namespace lmemo::cli {
namespace {

// Short work shows nothing at all: the first drawing comes one interval after the start.
constexpr int64_t kTerminalIntervalNs = 100'000'000;
constexpr int64_t kLogIntervalNs = 5'000'000'000;
constexpr int kMaxBarColumns = 30;

std::string amount(uint64_t count, std::string_view unit) {
  if (unit == "bytes") return format_byte_count(count);
  return format_count(count);
}

double fraction_of(const Progress& progress) {
  if (progress.total == 0) return 0;
  return std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total), 0.0, 1.0);
}

}  // namespace

std::string ProgressDisplay::line_of(const Progress& progress) const {
  std::string text = std::string(progress.phase) + ": ";
  if (progress.total > 0) text += format_fixed(fraction_of(progress) * 100, 0) + " %, ";
  text += amount(progress.done, progress.unit);
  if (progress.total > 0) text += " of " + amount(progress.total, progress.unit);
  if (progress.unit != "bytes" && !progress.unit.empty()) text += " " + std::string(progress.unit);
  if (!progress.note.empty()) text += ", " + std::string(progress.note);
  return text;
}

std::string ProgressDisplay::bar_of(const Progress& progress) const {
  const std::string text = line_of(progress);
  const int room = std::min(kMaxBarColumns, columns_ - 4 - static_cast<int>(text.size()));
  if (progress.total == 0 || room < 5) return text.substr(0, static_cast<size_t>(std::max(0, columns_ - 1)));
  const int filled = static_cast<int>(fraction_of(progress) * room);
  std::string bar;
  for (int column = 0; column < room; ++column) bar += column < filled ? "█" : "░";
  return bar + "  " + text;
}

void ProgressDisplay::show(const Progress& progress, int64_t now_ns) {
  if (!has_started_) {
    has_started_ = true;
    last_ns_ = now_ns;
    return;
  }
  if (now_ns - last_ns_ < (on_terminal_ ? kTerminalIntervalNs : kLogIntervalNs)) return;
  last_ns_ = now_ns;
  if (on_terminal_) {
    write_("\r\x1b[K" + bar_of(progress));
    is_drawn_ = true;
  } else {
    write_(line_of(progress) + "\n");
  }
}

void ProgressDisplay::hide() {
  if (is_drawn_) write_("\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace lmemo::cli
