// What a tree looked like when its files were last read: path, stamp, and the digest of the content. A file whose stamp is the
// same need not be opened, but for the racy case, which git has too: a file that changed within the clock's tick of being
// read may change once more and keep its stamp. Such an entry is kept, but not trusted: the file is read again.
//
//   const auto memory = StatMemory::load(file, owner);         // Null: none, damaged, or another's.
//   StatMemoryCursor cursor(memory.get());
//   for each path, sorted: if (const StatEntry* known = cursor.at(path); known && known->is_trusted(stamp)) use(known->content);
//
//   StatMemoryWriter writer(owner, label);
//   writer.add(path, entry);                                    // Sorted by path.
//   writer.write(file);
//
// One mapped file: header, label, entries of fixed size, paths. A checksum covers all of it; what does not fit is not used, and
// everything is read anew. `note` and `number` belong to the owner, which is a digest of whatever they depend on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "lmemo/bytes.h"
#include "lmemo/result.h"
#include "sources/directory_walk.h"

namespace lmemo {

enum class FileVerdict : uint32_t { text = 0, binary = 1, not_utf8 = 2 };

struct StatEntry {
  FileStamp stamp;
  Digest content;
  Digest note;
  uint64_t number = 0;
  FileVerdict verdict = FileVerdict::text;
  uint32_t is_racy = 0;

  bool is_trusted(const FileStamp& now) const { return is_racy == 0 && stamp == now; }
};

// Was the file changed so shortly before it was looked at, at `looked_at_ns`, that it may change again and look the same?
// Two seconds: the coarsest clock of a file system in use.
bool is_racy(const FileStamp& stamp, int64_t looked_at_ns);

class StatMemory {
 public:
  static std::shared_ptr<const StatMemory> load(const std::filesystem::path& file, const Digest& owner);
  // Whoever the owner is; for listing what is there.
  static std::shared_ptr<const StatMemory> load_any(const std::filesystem::path& file);

  size_t size() const { return count_; }
  const Digest& owner() const { return owner_; }
  const std::string& label() const { return label_; }  // The owner's words about it.
  StatEntry entry(size_t index) const;
  std::string_view path(size_t index) const;

 private:
  StatMemory() = default;
  bool read(std::shared_ptr<const MappedFile> file);

  std::shared_ptr<const MappedFile> file_;
  Digest owner_;
  std::string label_;
  const std::byte* entries_ = nullptr;
  std::string_view paths_;
  size_t count_ = 0;
};

// Goes through a memory and a sorted list of paths side by side.
class StatMemoryCursor {
 public:
  explicit StatMemoryCursor(const StatMemory* memory, size_t first = 0) : memory_(memory), next_(first) {}
  // Requires: paths are asked for in ascending order. The index of the entry.
  std::optional<size_t> at(std::string_view path);

 private:
  const StatMemory* memory_;
  size_t next_;
};

class StatMemoryWriter {
 public:
  StatMemoryWriter(const Digest& owner, std::string label) : owner_(owner), label_(std::move(label)) {}
  void reserve(size_t entries, size_t path_bytes);
  void add(std::string_view path, const StatEntry& entry);
  // Replaced by one rename. Not synced: a torn file is one whose checksum does not fit.
  Status write(const std::filesystem::path& file) const;

 private:
  const Digest owner_;
  const std::string label_;
  std::string entries_, paths_;
  uint64_t count_ = 0;
};

}  // namespace lmemo
