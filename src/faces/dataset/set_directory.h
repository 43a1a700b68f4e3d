// Where a set lives. Its files lie in a directory of their own, which never changes once it is complete:
//
//   DIR/tokenized_dataset  →  .lmemo/current/tokenized_dataset     what people and programs open
//   DIR/metadata.json      →  .lmemo/current/metadata.json
//   DIR/tokenizer          →  .lmemo/current/tokenizer
//   DIR/.lmemo/current     →  set-0f3a…                            one rename replaces all three at once
//   DIR/.lmemo/set-0f3a…/                                          the set
//   DIR/.lmemo/building-4711…/                                     one that is being made
//   DIR/.lmemo/lock, builder, seen.json                            who builds; which files were looked at
//
// Exchanging whole directories was rejected: DIR may be a mount point, and may hold files of others.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/followed.h"
#include "lmemo/dataset.h"

namespace lmemo::dataset {

inline constexpr const char* kDatasetFolder = "tokenized_dataset";
inline constexpr const char* kMetadataFile = "metadata.json";
inline constexpr const char* kTokenizerFolder = "tokenizer";

class SetDirectory {
 public:
  explicit SetDirectory(const std::filesystem::path& directory) : directory_(followed(directory)) {}

  const std::filesystem::path& path() const { return directory_; }
  std::filesystem::path private_path() const { return directory_ / ".lmemo"; }
  std::filesystem::path seen_path() const { return private_path() / "seen.json"; }

  // The files of the set that is there now; nullopt if there is none. A copy of a set, with files in place of links, is
  // one too.
  std::optional<std::filesystem::path> current() const;

  // Makes DIR and .lmemo. Refuses a directory in which one of our three names is somebody else's.
  Status prepare() const;
  // Waits until nobody else builds. Gone with the process, however it ends.
  Result<std::unique_ptr<FileLock>> lock(const Watch& watch, const DatasetNote& note) const;
  Result<std::unique_ptr<FileLock>> try_lock() const;

  // The rest requires the lock.
  void remove_leftovers() const;  // Of builders that died, and sets that were replaced.
  Result<std::filesystem::path> begin_set() const;
  // The set becomes the current one; the one before is removed.
  Status publish(const std::filesystem::path& set) const;

 private:
  Status make_links() const;

  const std::filesystem::path directory_;
};

}  // namespace lmemo::dataset
