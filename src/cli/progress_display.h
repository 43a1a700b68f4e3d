// Shows how far long work is: a bar on a terminal, one plain line every few seconds in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lmemo/progress.h"

namespace lmemo::cli {

class ProgressDisplay {
 public:
  ProgressDisplay(bool on_terminal, int columns, std::function<void(std::string_view)> write)
      : on_terminal_(on_terminal), columns_(columns), write_(std::move(write)) {}

  // May be called as often as one likes; draws only now and then.
  void show(const Progress& progress, int64_t now_ns);
  // Takes the bar off the terminal, so that another line can be written.
  void hide();

 private:
  std::string line_of(const Progress& progress) const;
  std::string bar_of(const Progress& progress) const;

  const bool on_terminal_;
  const int columns_;
  const std::function<void(std::string_view)> write_;
  bool is_drawn_ = false;
  bool has_started_ = false;
  int64_t last_ns_ = 0;
};

}  // namespace lmemo::cli
