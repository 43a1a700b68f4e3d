// What every measurement needs: a stopwatch, medians, a place for data that is always cleaned up, and the report.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/result.h"

namespace lmemo::bench {

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// For work that never waits for the disk: what this thread took, whoever else keeps the CPUs busy.
double thread_cpu_seconds();

double median(std::vector<double> samples);
// Round by round, so that a slow minute of the machine hits both sides.
std::vector<double> ratios(const std::vector<double>& numerators, const std::vector<double>& denominators);

// A benchmark has nobody to pass an error up to: says what failed and exits.
[[noreturn]] void fail(const std::string& message);
template <typename T>
T must(Result<T> result, std::string_view doing) {
  if (!result.ok()) fail(std::string(doing) + ": " + result.error().describe());
  return std::move(result).value();
}
inline void must(const Status& status, std::string_view doing) {
  if (!status.ok()) fail(std::string(doing) + ": " + status.error().describe());
}

// What the disk gave away for everything below a directory, as `du` counts it.
uint64_t disk_use_bytes(const std::filesystem::path& directory);
uint64_t free_disk_bytes(const std::filesystem::path& directory);

// "AMD EPYC, 2 CPUs, 23 GiB, Linux 6.1, ext4"
std::string describe_machine(const std::filesystem::path& directory);

// 0.123 µs, 4.5 ms, 1.2 s.
std::string seconds_text(double seconds);
std::string number_text(double number, int decimals);

// One line of the result: what was measured, and, where a bar stands for it, whether it was reached.
struct Line {
  std::string measure;
  std::string data;
  std::string result;  // "0.11 µs; LMDB 1.02 µs"
  double figure = 0;   // What is held against the bar: a ratio, GB/s, milliseconds, …
  std::string unit;    // "x", "GB/s", …
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};

  std::optional<bool> is_met() const {
    if (at_least) return figure >= *at_least;
    if (at_most) return figure <= *at_most;
    return std::nullopt;
  }
};

class Report {
 public:
  explicit Report(bool is_json) : is_json_(is_json) {}
  void begin(const std::string& machine);
  // Shown at once, on stdout; with --json at the end.
  void add(Line line);
  void skip(const std::string& what, const std::string& why);
  void finish();

 private:
  const bool is_json_;
  std::string machine_;
  std::vector<Line> lines_;
  std::vector<std::pair<std::string, std::string>> skipped_;
};

}  // namespace lmemo::bench
