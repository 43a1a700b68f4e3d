#include "faces/inspect_beside.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file_system.h"
#include "base/sha256.h"
#include "base/units.h"
#include "base/utf8.h"
#include "sources/stat_memory.h"
#include "stats/run_metrics.h"

namespace lmemo {
namespace {

void show_memory(const std::filesystem::path& file, uint64_t max_lines, BesideFile& found) {
  const auto memory = StatMemory::load_any(file);
  found.is_sound = memory != nullptr;
  if (!memory) return;
  found.facts = {{"owner", memory->owner().hex()}, {"label", memory->label()}};
  found.line_count = memory->size();
  for (size_t i = 0; i < std::min<uint64_t>(memory->size(), max_lines); ++i) {
    const StatEntry entry = memory->entry(i);
    const char* verdict = entry.verdict == FileVerdict::text     ? ""
                          : entry.verdict == FileVerdict::binary ? ", binary"
                                                                 : ", not UTF-8";
    found.lines.push_back(
        entry.content.hex().substr(0, 16) + "  " + format_time_utc(entry.stamp.modified_ns) + "  " +
        format_count(entry.stamp.byte_count) + " bytes  " + std::string(memory->path(i)) + verdict);
  }
}

// The layout of tokenizer/fast/saved_pieces.cpp: magic, identity, two counts, pieces, SHA-256 of all that.
void show_pieces(Bytes bytes, size_t magic_bytes, BesideFile& found) {
  constexpr size_t kDigestBytes = sizeof(Digest::bytes);
  uint64_t counts[2];
  const size_t header = magic_bytes + kDigestBytes + sizeof counts;
  found.is_sound = bytes.size() >= header + kDigestBytes;
  if (!found.is_sound) return;
  const Bytes content = bytes.first(bytes.size() - kDigestBytes);
  const Digest digest = sha256(content);
  found.is_sound = std::memcmp(digest.bytes.data(), bytes.data() + content.size(), kDigestBytes) == 0;
  Digest tokenizer;
  std::memcpy(tokenizer.bytes.data(), bytes.data() + magic_bytes, kDigestBytes);
  std::memcpy(counts, bytes.data() + magic_bytes + kDigestBytes, sizeof counts);
  found.facts = {{"tokenizer", tokenizer.hex()},
                 {"pieces", format_count(counts[0])},
                 {"long_pieces", format_count(counts[1])}};
}

void show_runs(const std::filesystem::path& file, uint64_t max_lines, BesideFile& found) {
  const Result<std::vector<RunRecord>> runs = read_runs(file);
  found.is_sound = runs.ok();
  if (!runs.ok()) {
    found.facts = {{"problem", runs.error().message}};
    return;
  }
  found.line_count = runs->size();
  for (size_t i = 0; i < std::min<uint64_t>(runs->size(), max_lines); ++i) {
    const RunRecord& run = (*runs)[i];
    found.lines.push_back(run.run_id + "  " + run.face + "  " + format_count(run.cache_hits) + " hits, " +
                          format_count(run.cache_misses) + " misses  " + run.source);
  }
}

void show_json(std::string_view text, uint64_t max_lines, BesideFile& found) {
  const bool is_one = nlohmann::json::accept(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!is_one && !line.empty()) found.is_sound &= nlohmann::json::accept(line);
    if (++found.line_count <= max_lines) found.lines.emplace_back(line);
  }
  found.what = is_one ? "JSON" : "JSON lines";
}

}  // namespace

std::optional<BesideFile> inspect_beside(const std::filesystem::path& file, uint64_t max_lines) {
  const auto mapped = real_file_system().map(file);
  if (!mapped.ok() || !*mapped) return std::nullopt;
  const Bytes bytes = (*mapped)->bytes();
  const std::string_view text = text_of(bytes);
  BesideFile found;
  found.file_bytes = bytes.size();
  if (text.starts_with("lmemstat")) {
    found.what = "memory of a source tree";
    show_memory(file, max_lines, found);
  } else if (text.starts_with("lmemoPT2")) {
    found.what = "saved pieces of a tokenizer";
    show_pieces(bytes, 8, found);
  } else if (text.starts_with(std::string_view("SQLite format 3\0", 16))) {
    found.what = "metrics of runs";
    show_runs(file, max_lines, found);
  } else if (text.starts_with('{')) {
    show_json(text, max_lines, found);
  } else {
    return std::nullopt;
  }
  return found;
}

}  // namespace lmemo
