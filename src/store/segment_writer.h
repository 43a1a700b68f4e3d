// Writes one segment under a private name: records as they come, then the index, then the footer, then a sync.
// Nobody but its writer looks at the file until it is renamed into place.
//
// Not safe for threads; its owner guards it.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/format.h"

namespace lmemo {

struct NewRecord {
  RecordType type = RecordType::value;
  Digest digest;
  std::string_view encoding;
  Bytes value;
  int64_t written_ns = 0;
  uint32_t accessed_minutes = 0;
};

class SegmentWriter {
 public:
  static constexpr size_t kMaxKinds = 1024;

  // `capacity` bounds the records that can be read back through bytes().
  static Result<std::unique_ptr<SegmentWriter>> create(FileSystem& files, const Path& path, uint64_t nonce,
                                                       int64_t created_ns, uint64_t capacity);
  // Goes on with a file that a dead writer left: its sound records up to the first torn one. Null, and `file` left
  // to the caller, if it is nothing that lmemo began.
  static Result<std::unique_ptr<SegmentWriter>> resume(std::unique_ptr<WritableFile>& file, const Path& path,
                                                       Bytes bytes);

  bool has_room_for(uint64_t bytes_of_records) const;
  // All or nothing: after an error the file holds what it held before, or is_broken() says that it may not.
  Status append(std::span<const NewRecord> records);

  // Completes the file and syncs it. May be tried again after a failure, unless is_lost().
  Status seal();
  // Gives the descriptor back. What was written stays readable for whoever holds a view of it.
  void close() { file_.reset(); }
  bool is_broken() const { return is_broken_; }
  // A sync failed. The kernel may have dropped the bytes and will not say so twice: this file is never to be trusted.
  bool is_lost() const { return is_lost_; }

  const Path& path() const { return path_; }
  uint64_t nonce() const { return nonce_; }
  int64_t created_ns() const { return created_ns_; }
  // In the order of the appends; entries never move while the writer lives, and a new one is complete
  // before entry_count() shows it.
  const IndexEntry* entries() const { return entries_.get(); }
  uint32_t entry_count() const { return entry_count_; }
  const std::vector<std::string>& kinds() const { return kinds_; }
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }
  uint64_t byte_count() const { return byte_count_; }
  // What the sealed file will take, about.
  uint64_t projected_bytes() const;

 private:
  SegmentWriter(std::unique_ptr<WritableFile> file, Path path, uint64_t nonce, int64_t created_ns);
  void add_entry(const NewRecord& record, uint64_t offset);
  // Sorted by digest, the latest of each.
  std::vector<IndexEntry> sorted_entries() const;

  std::unique_ptr<WritableFile> file_;
  Path path_;
  uint64_t nonce_;
  int64_t created_ns_;
  std::shared_ptr<const MappedFile> mapping_;
  uint64_t byte_count_ = 0;      // Of header and records.
  uint64_t encoding_bytes_ = 0;  // Sum over the records.
  uint64_t writeback_from_ = 0;
  std::vector<std::byte> copied_;  // What append() gathers; kept for the next one.
  struct Free {
    void operator()(IndexEntry* entries) const { std::free(entries); }
  };
  std::unique_ptr<IndexEntry[], Free> entries_;
  uint32_t entry_count_ = 0;
  std::vector<std::string> kinds_;
  bool is_broken_ = false;
  bool is_lost_ = false;
  bool is_sealed_ = false;
};

}  // namespace lmemo
