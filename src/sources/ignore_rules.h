// What a .gitignore says: patterns from the top down, the last one that matches wins, `!` takes back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lmemo {

// The rules of one directory and of those above it. Shared by all directories below, never changed.
class IgnoreRules {
 public:
  // `directory` is where the file stands, relative to the root and ending with a slash, or empty.
  static std::shared_ptr<const IgnoreRules> read(std::string_view file, std::string_view directory,
                                                 std::shared_ptr<const IgnoreRules> above);

  bool ignores(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string pattern;
    bool is_negated = false;
    bool is_for_directories = false;
  };
  std::optional<bool> verdict(std::string_view path, bool is_directory) const;

  std::string directory_;
  std::vector<Rule> rules_;
  std::shared_ptr<const IgnoreRules> above_;
};

}  // namespace lmemo
