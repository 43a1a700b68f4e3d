// Globs over relative paths with forward slashes, as bytes: `*` and `?` stay within one part of the path, `**` as a
// whole part stands for any number of parts, also none. "**/*.py" matches "a.py" and "b/c/a.py"; "*.py" only "a.py".
//
//   const GlobSet wanted({"**/*.c", "docs/**"});
//   if (wanted.matches("src/main.c")) …
//
// A `?` is one UTF-8 character, or one byte where the path is not UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace lmemo {

enum class GlobDialect {
  plain,   // Everything but * and ? means itself.
  ignore,  // Also [a-z], [!a-z] and backslash, as in a .gitignore.
};

bool glob_matches(std::string_view pattern, std::string_view path, GlobDialect dialect = GlobDialect::plain);

// Many patterns at once. The frequent forms "**/name" and "**/*.ext" cost one look-up, however many there are.
class GlobSet {
 public:
  GlobSet() = default;
  explicit GlobSet(const std::vector<std::string>& patterns);

  bool empty() const { return is_empty_; }
  bool matches(std::string_view path) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Names = std::unordered_set<std::string, Hash, std::equal_to<>>;

  bool is_empty_ = true;
  bool matches_all_ = false;
  Names names_;       // Of "**/name".
  Names extensions_;  // Of "**/*.ext", without the dot.
  std::vector<std::string> others_;
};

// What nobody wants to train on: version control, virtual environments, dependencies, build output, lock files, archives,
// keys and .env files. Patterns of the kind that `exclude` takes.
const std::vector<std::string>& default_excludes();

}  // namespace lmemo
