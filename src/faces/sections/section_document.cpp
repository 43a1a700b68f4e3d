#include "faces/sections/section_document.h"

#include <algorithm>

#include "base/file_system.h"
#include "sources/frontmatter.h"

namespace lmemo {
namespace {

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

bool is_document(const std::filesystem::path& path) {
  std::error_code error;
  return path.extension() == ".dlm" && std::filesystem::is_regular_file(path, error);
}

Result<SectionDocument> read_document(const std::filesystem::path& path, const std::filesystem::path& home) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return errno_error(error.value(), "read", path);
  LMEMO_ASSIGN(const auto mapped, real_file_system().map(file));
  if (!mapped) return Error{ErrorCode::io_error, path.string() + ": it is gone"};
  const Result<Frontmatter> parsed = parse_frontmatter(text_of(mapped->bytes()));
  if (!parsed.ok()) return Error{parsed.error().code, path.string() + ": " + parsed.error().message};
  SectionDocument document;
  document.id = parsed->id;
  document.sequence_len = parsed->sequence_len;
  document.cache_enabled = parsed->cache_enabled;
  document.cache_max_bytes = parsed->cache_max_bytes;
  document.prune_older_than_days = parsed->prune_older_than_days;
  for (const std::string& key : parsed->unknown) document.warnings.push_back(path.string() + ": " + key);
  const std::filesystem::path folder = file.parent_path();
  for (const DocumentSourceEntry& entry : parsed->sources) {
    std::filesystem::path source = entry.path;
    if (entry.path == "~")
      source = home;
    else if (entry.path.starts_with("~/"))
      source = home / entry.path.substr(2);
    source = std::filesystem::weakly_canonical(folder / source, error);
    if (error) return errno_error(error.value(), "read", folder / entry.path);
    if (!is_below(source, folder)) {
      if (parsed->is_strict)
        return Error{ErrorCode::invalid_argument, path.string() + ": source " + entry.path + " leads to " +
                                                      source.string() + ", outside " + folder.string() +
                                                      "; sources_policy is strict"};
      document.warnings.push_back(path.string() + ": source " + entry.path +
                                  " is outside the document's directory");
    }
    document.sources.push_back({source, entry.include, entry.exclude, entry.max_files.value_or(0),
                                entry.max_bytes_per_file.value_or(0),
                                parsed->is_strict ? folder : std::filesystem::path()});
  }
  return document;
}

}  // namespace lmemo
