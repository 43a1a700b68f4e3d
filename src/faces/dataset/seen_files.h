// What is known of files from looking at them once: their digest, under their size, times and inode. So that checking a
// set costs a few system calls, not a pass over gigabytes. A file that changed shortly before it was looked at could
// change again without its times telling: such a file is not remembered.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faces/dataset/row_recipe.h"
#include "lmemo/bytes.h"
#include "lmemo/dataset.h"
#include "sources/directory_walk.h"

namespace lmemo::dataset {

struct FileIdentity {
  uint64_t byte_count = 0;
  Digest sha256;
};

// nullopt if it cannot be looked at.
std::optional<FileStamp> look_at(const std::filesystem::path& path);

class SeenFiles {
 public:
  // What is missing, damaged or of another version is nothing seen.
  static SeenFiles load(const std::filesystem::path& file);
  // Fine if it cannot be written: then the next one hashes again.
  void save(const std::filesystem::path& file) const;

  std::optional<FileIdentity> find(const std::filesystem::path& path) const;
  // `before` was taken before the file was read.
  void note(const std::filesystem::path& path, const FileStamp& before, const FileIdentity& identity);

  // The set's own files, by their name in it: a set may move.
  bool has_data(const std::string& name, const FileStamp& stamp, const std::string& checksum) const;
  void note_data(const std::string& name, const std::filesystem::path& path, const FileStamp& before,
                 const std::string& checksum);

  std::optional<TokenizerFacts> find_tokenizer(const DatasetOptions& options) const;
  void note_tokenizer(const DatasetOptions& options, const std::vector<std::string>& stamps_before,
                      const TokenizerFacts& facts);
  // What find_tokenizer compares: one line for each file that can change the identity.
  static std::vector<std::string> tokenizer_stamps(const std::filesystem::path& tokenizer);

  bool has_changed() const { return has_changed_; }

 private:
  struct Seen {
    FileStamp stamp;
    FileIdentity identity;
  };
  struct SeenData {
    FileStamp stamp;
    std::string checksum;
  };
  struct SeenTokenizer {
    std::vector<std::string> stamps;
    TokenizerFacts facts;
  };
  static std::string tokenizer_name(const DatasetOptions& options);

  std::map<std::string, Seen> files_;
  std::map<std::string, SeenData> data_;
  std::map<std::string, SeenTokenizer> tokenizers_;
  bool has_changed_ = false;
};

// From memory, or by reading it whole.
Result<FileIdentity> identity_of_file(const std::filesystem::path& path, SeenFiles& seen, bool rehash,
                                      const Watch& watch);

}  // namespace lmemo::dataset
