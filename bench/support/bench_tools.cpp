#include "bench_tools.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "base/json_writer.h"

namespace lmemo::bench {

double thread_cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

std::vector<double> ratios(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i)
    result.push_back(numerators[i] / denominators[i]);
  return result;
}

void fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "bench: %s\n", message.c_str());
  std::_Exit(1);
}

uint64_t disk_use_bytes(const std::filesystem::path& directory) {
  uint64_t blocks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat status;
    if (::lstat(entry.path().c_str(), &status) == 0) blocks += static_cast<uint64_t>(status.st_blocks);
  }
  return blocks * 512;
}

uint64_t free_disk_bytes(const std::filesystem::path& directory) {
  struct statvfs status;
  if (::statvfs(directory.c_str(), &status) != 0) return 0;
  return uint64_t{status.f_bavail} * status.f_frsize;
}

std::string describe_machine(const std::filesystem::path& directory) {
  std::string cpu = "unknown CPU", line;
  for (std::ifstream file("/proc/cpuinfo"); std::getline(file, line);)
    if (line.starts_with("model name")) {
      cpu = line.substr(line.find(':') + 2);
      break;
    }
  const double memory_gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<double>(::sysconf(_SC_PAGE_SIZE)) / (1 << 30);
  utsname system;
  ::uname(&system);
  struct statfs files;
  std::string file_system = "unknown file system";
  if (::statfs(directory.c_str(), &files) == 0) switch (files.f_type) {
      case 0xef53: file_system = "ext4"; break;
      case 0x58465342: file_system = "xfs"; break;
      case 0x01021994: file_system = "tmpfs"; break;
      case 0x9123683e: file_system = "btrfs"; break;
      case 0x794c7630: file_system = "overlayfs"; break;
      default: break;
    }
  return cpu + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs, " +
         number_text(memory_gib, 0) + " GiB, " + system.sysname + " " + system.release + ", " + file_system;
}

std::string number_text(double number, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return number_text(seconds * 1e6, seconds < 1e-5 ? 3 : 1) + " µs";
  if (seconds < 1) return number_text(seconds * 1e3, seconds < 1e-2 ? 2 : 1) + " ms";
  return number_text(seconds, 2) + " s";
}

namespace {

std::string bar_text(const Line& line) {
  if (line.at_least) return "at least " + number_text(*line.at_least, *line.at_least < 10 ? 1 : 0);
  if (line.at_most) return "at most " + number_text(*line.at_most, *line.at_most < 10 ? 2 : 0);
  return "";
}

}  // namespace

void Report::begin(const std::string& machine) {
  machine_ = machine;
  if (is_json_) return;
  std::printf("%s\n\n| measure | data | result | figure | bar | met |\n|---|---|---|---|---|---|\n",
              machine.c_str());
  std::fflush(stdout);
}

void Report::add(Line line) {
  if (!is_json_) {
    const std::optional<bool> met = line.is_met();
    std::printf("| %s | %s | %s | %s %s | %s | %s |\n", line.measure.c_str(), line.data.c_str(),
                line.result.c_str(), number_text(line.figure, line.figure < 10 ? 2 : 1).c_str(),
                line.unit.c_str(), bar_text(line).c_str(), met ? (*met ? "yes" : "**no**") : "");
    std::fflush(stdout);
  }
  lines_.push_back(std::move(line));
}

void Report::skip(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "bench: skipped %s: %s\n", what.c_str(), why.c_str());
  skipped_.emplace_back(what, why);
}

void Report::finish() {
  size_t bars = 0, met = 0;
  for (const Line& line : lines_)
    if (const std::optional<bool> is_met = line.is_met()) ++bars, met += *is_met;
  if (!is_json_) {
    std::printf("\n%zu of %zu bars met\n", met, bars);
    for (const auto& [what, why] : skipped_) std::printf("skipped: %s (%s)\n", what.c_str(), why.c_str());
    return;
  }
  JsonWriter json;
  json.begin_object();
  json.member("version", 1);
  json.member("machine", machine_);
  json.begin_array("measures");
  for (const Line& line : lines_) {
    json.begin_object();
    json.member("measure", line.measure);
    json.member("data", line.data);
    json.member("result", line.result);
    json.member("figure", line.figure);
    json.member("unit", line.unit);
    json.member("at_least", line.at_least);
    json.member("at_most", line.at_most);
    json.member("met", line.is_met());
    json.end_object();
  }
  json.end_array();
  json.begin_array("skipped");
  for (const auto& [what, why] : skipped_) json.value(what + ": " + why);
  json.end_array();
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

}  // namespace lmemo::bench
