// Looks into the files that lmemo keeps beside segments, damaged or not: memories of source trees, saved pieces of a
// tokenizer, metrics, and JSON (metadata, traces, verdicts).
//
//   if (const auto found = inspect_beside("store/metrics.db", 10)) show(found->what, found->facts, found->lines);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lmemo {

struct BesideFile {
  std::string what;
  bool is_sound = true;
  uint64_t file_bytes = 0;
  std::vector<std::pair<std::string, std::string>> facts = {};
  uint64_t line_count = 0;
  std::vector<std::string> lines = {};  // What is in it, one thing a line, as far as asked for.
};

// Nothing if it is no such file.
std::optional<BesideFile> inspect_beside(const std::filesystem::path& file, uint64_t max_lines);

}  // namespace lmemo
