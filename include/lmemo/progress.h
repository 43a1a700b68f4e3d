// How long work tells how far it is, and how it is told to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace lmemo {

struct ProgressFigure {
  std::string_view name;  // "documents", "seconds_left", …
  double value = 0;
};

struct Progress {
  std::string_view phase;  // "verify", "compact", …
  uint64_t done = 0;
  uint64_t total = 0;                            // 0: not known.
  std::string_view unit;                         // "bytes", "entries", …
  std::string_view note = {};                    // What else is worth a glance, in words …
  std::span<const ProgressFigure> figures = {};  // … and for programs.
};

// Both are called now and then from the working thread; leave them empty if you do not care.
struct Watch {
  std::function<void(const Progress&)> on_progress;
  std::function<bool()> should_stop;

  void report(const Progress& progress) const {
    if (on_progress) on_progress(progress);
  }
  bool stopped() const { return should_stop && should_stop(); }
};

}  // namespace lmemo
