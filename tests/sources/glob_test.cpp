#include "sources/glob.h"

#include <doctest/doctest.h>

#include "sources/ignore_rules.h"

namespace lmemo {
namespace {

TEST_CASE("a star stays within a part of the path, two stars do not") {
  CHECK(glob_matches("*.py", "a.py"));
  CHECK_FALSE(glob_matches("*.py", "b/a.py"));
  CHECK(glob_matches("**/*.py", "a.py"));
  CHECK(glob_matches("**/*.py", "b/c/a.py"));
  CHECK(glob_matches("b/**", "b/c/a.py"));
  CHECK_FALSE(glob_matches("b/**/x", "b/x/a.py"));
  CHECK(glob_matches("b/**/a.py", "b/a.py"));
  CHECK(glob_matches("b/**/a.py", "b/x/y/a.py"));
  CHECK(glob_matches("**", "b/x/y/a.py"));
  CHECK(glob_matches("**/x/**/a", "q/x/x/r/a"));
  CHECK_FALSE(glob_matches("**/x/*/a", "q/x/r/s/a"));
  CHECK(glob_matches("a*b*c", "aXXbYYbZc"));
  CHECK_FALSE(glob_matches("a*b*c", "aXXbYYbZd"));
  CHECK(glob_matches("a**c", "abc"));  // Not a part of its own: a star.
  CHECK_FALSE(glob_matches("a**c", "a/c"));
}

TEST_CASE("a question mark is one character, also beyond ASCII") {
  CHECK(glob_matches("?.md", "é.md"));
  CHECK(glob_matches("?.md", "\xFF.md"));
  CHECK_FALSE(glob_matches("?.md", ".md"));
  CHECK_FALSE(glob_matches("a?b", "a/b"));
}

TEST_CASE("brackets and backslashes mean themselves, but for ignore files") {
  CHECK(glob_matches("[a].txt", "[a].txt"));
  CHECK_FALSE(glob_matches("[a].txt", "a.txt"));
  CHECK(glob_matches("[a-c]?.txt", "bx.txt", GlobDialect::ignore));
  CHECK_FALSE(glob_matches("[!a-c]x", "bx", GlobDialect::ignore));
  CHECK(glob_matches("[]]x", "]x", GlobDialect::ignore));
  CHECK(glob_matches("[x", "[x", GlobDialect::ignore));
  CHECK(glob_matches("\\*x", "*x", GlobDialect::ignore));
}

TEST_CASE("a pattern of many stars does not take forever") {
  std::string pattern, path;
  for (int i = 0; i < 30; ++i) pattern += "**/a*a*a*/", path += "aaaaaaaaaaaaaaaaaaaaaa/";
  CHECK_FALSE(glob_matches(pattern + "b", path + "c"));
}

TEST_CASE("a set says what its patterns say one by one") {
  const std::vector<std::string> patterns = {"**/node_modules", "**/*.c",     "docs/*.md",
                                             "**/*.tar.gz",     "**/id_rsa*", "top"};
  const GlobSet set(patterns);
  for (const char* path : {"node_modules", "a/node_modules", "node_modules/x", "x.c", "a/b.c", "c", ".c",
                           "docs/a.md", "docs/b/a.md", "a.tar.gz", "x/a.tar.gz", "a.gz", "id_rsa",
                           "k/id_rsa.pub", "top", "a/top", "tar.gz", "x.c/y"}) {
    bool expected = false;
    for (const std::string& pattern : patterns) expected = expected || glob_matches(pattern, path);
    CHECK_MESSAGE(set.matches(path) == expected, path);
  }
  CHECK(GlobSet({"**"}).matches("a/b"));
  CHECK_FALSE(GlobSet().matches("a"));
}

TEST_CASE("an ignore file as git reads it") {
  const auto top = IgnoreRules::read(
      "# comment\n*.log\n!keep.log\n/only_top\nbuild/\ndoc/*.txt\n\\#odd\nblank \r\n", "", nullptr);
  CHECK(top->ignores("a.log", false));
  CHECK(top->ignores("x/a.log", false));
  CHECK_FALSE(top->ignores("x/keep.log", false));
  CHECK(top->ignores("only_top", false));
  CHECK_FALSE(top->ignores("x/only_top", false));
  CHECK(top->ignores("x/build", true));
  CHECK_FALSE(top->ignores("x/build", false));
  CHECK(top->ignores("doc/a.txt", false));
  CHECK_FALSE(top->ignores("x/doc/a.txt", false));
  CHECK(top->ignores("#odd", false));
  CHECK(top->ignores("blank", false));
  const auto below = IgnoreRules::read("!a.log\n/here\n", "x/", top);
  CHECK_FALSE(below->ignores("x/a.log", false));
  CHECK(below->ignores("x/b.log", false));
  CHECK(below->ignores("x/here", false));
  CHECK_FALSE(below->ignores("x/y/here", false));
}

}  // namespace
}  // namespace lmemo
