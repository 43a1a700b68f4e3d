#include "sources/directory_walk.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sources/source_file.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> paths_of(const SourceListing& listing) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < listing.size(); ++i) paths.emplace_back(listing.path(i));
  return paths;
}

using Paths = std::vector<std::string>;

TEST_CASE("files come sorted by their whole path, whatever the number of threads") {
  const test::TempDirectory folder;
  for (const char* name : {"a/b.c", "a.c", "a-b/x", "a0", "z", "a/a/a", "B"})
    write(folder.path() / name, name);
  for (const unsigned threads : {1u, 2u, 5u}) {
    const auto listing = walk_sources(folder.path(), {.threads = threads});
    REQUIRE(listing.ok());
    const Paths found = paths_of(*listing);
    CHECK(found == Paths{"B", "a-b/x", "a.c", "a/a/a", "a/b.c", "a0", "z"});
    CHECK(std::is_sorted(found.begin(), found.end()));
    CHECK(listing->total_bytes() == 1 + 5 + 3 + 5 + 5 + 2 + 1);
    CHECK(listing->counts().directories == 4);
  }
}

TEST_CASE("globs, default excludes and limits choose") {
  const test::TempDirectory folder;
  for (const char* name : {"a.py", "b/c.py", "b/d.txt", "node_modules/x.py", "b/.env.local", "k/id_rsa",
                           "vendor/x/y.py", "poetry.lock"})
    write(folder.path() / name, name);
  const auto with = [&](WalkOptions options) {
    const auto listing = walk_sources(folder.path(), options);
    REQUIRE(listing.ok());
    return paths_of(*listing);
  };
  CHECK(with({}) == Paths{"a.py", "b/c.py", "b/d.txt", "vendor/x/y.py"});
  CHECK(with({.use_default_excludes = false}).size() == 8);
  CHECK(with({.include = {"**/*.py"}}) == Paths{"a.py", "b/c.py", "vendor/x/y.py"});
  CHECK(with({.include = {"*.py"}}) == Paths{"a.py"});
  CHECK(with({.exclude = {"vendor"}}) == Paths{"a.py", "b/c.py", "b/d.txt"});
  CHECK(with({.exclude = {"vendor/**", "**/*.txt"}}) == Paths{"a.py", "b/c.py"});
  CHECK(with({.exclude = {"b/"}}) == Paths{"a.py", "vendor/x/y.py"});
  CHECK(with({.max_files = 2}) == Paths{"a.py", "b/c.py"});
  CHECK(with({.max_bytes_per_file = 4}) == Paths{"a.py"});
  CHECK_FALSE(walk_sources(folder.path(), {.include = {""}}).ok());
  CHECK_FALSE(walk_sources(folder.path(), {.exclude = {"/abs"}}).ok());
}

TEST_CASE("what everybody wants left out is left out, and sources are not") {
  const test::TempDirectory folder;
  for (const char* name : {".git/HEAD",
                           ".hg/store/data",
                           ".svn/entries",
                           ".env",
                           ".env.production",
                           "src/.env.local",
                           "user/id_rsa",
                           "user/id_ed25519",
                           "a/b.pem",
                           "a/b.key",
                           "app/secrets.toml",
                           "src/__pycache__/x.pyc",
                           ".venv/lib/x.py",
                           "venv/bin/activate",
                           "node_modules/r/i.js",
                           "web/a.min.js",
                           "web/a.min.css",
                           "web/a.map",
                           "target/release/app",
                           "lib/x.rlib",
                           "lib/App.class",
                           "lib/app.jar",
                           "src/x.so",
                           "src/x.dylib",
                           "src/x.dll",
                           "build/out.txt",
                           "dist/index.html",
                           "__generated__/p.py",
                           "generated/api.py",
                           "package-lock.json",
                           "sub/yarn.lock",
                           "Cargo.lock",
                           "uv.lock",
                           "Pipfile.lock",
                           "pnpm-lock.yaml",
                           "assets/logo.png",
                           "docs/d.pdf",
                           "release.zip",
                           "a.tar.gz",
                           "assets/c.wasm",
                           ".dlm/training.yaml",
                           "src/.dlm/ignore"})
    write(folder.path() / name, "x");
  const Paths sources = {"Makefile",    "README.md",       "app/models/user.java", "docs/guide.md",
                         "lib/auth.go", "src/building.py", "src/keys.c",           "src/main.py"};
  for (const std::string& name : sources) write(folder.path() / name, "x");
  CHECK(paths_of(*walk_sources(folder.path())) == sources);
}

TEST_CASE("links count as leaving where they leave the boundary that is given") {
  const test::TempDirectory folder;
  write(folder.path() / "other/a", "a");
  write(folder.path() / "src/b", "b");
  fs::create_symlink("../other/a", folder.path() / "src/near");
  fs::create_symlink("/etc/hostname", folder.path() / "src/far");
  CHECK(walk_sources(folder.path() / "src")->escaping_links() == Paths{"far", "near"});
  CHECK(walk_sources(folder.path() / "src", {.boundary = fs::canonical(folder.path())})->escaping_links() ==
        Paths{"far"});
}

TEST_CASE("ignore files are honoured on request") {
  const test::TempDirectory folder;
  write(folder.path() / ".gitignore", "*.log\nout/\n");
  for (const char* name : {"a.log", "a.c", "out/x.c", "sub/b.log", "sub/keep.log"})
    write(folder.path() / name, name);
  write(folder.path() / "sub/.gitignore", "!keep.log\n");
  const auto listing = walk_sources(folder.path(), {.use_ignore_files = true});
  REQUIRE(listing.ok());
  CHECK(paths_of(*listing) == Paths{".gitignore", "a.c", "sub/.gitignore", "sub/keep.log"});
  CHECK(walk_sources(folder.path())->size() == 7);
}

TEST_CASE("links are not followed, loops end, escapes are named, pipes are left out") {
  const test::TempDirectory outside, folder;
  write(outside.path() / "secret", "s");
  write(folder.path() / "d/a", "a");
  fs::create_directory_symlink("..", folder.path() / "d/loop");
  fs::create_symlink("self", folder.path() / "self");
  fs::create_symlink(outside.path() / "secret", folder.path() / "d/out");
  fs::create_directory_symlink(outside.path(), folder.path() / "outdir");
  fs::create_symlink("a", folder.path() / "d/inside");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const auto listing = walk_sources(folder.path());
  REQUIRE(listing.ok());
  CHECK(paths_of(*listing) == Paths{"d/a"});
  CHECK(listing->counts().symlinks == 5);
  CHECK(listing->counts().special == 1);
  CHECK(listing->escaping_links() == Paths{"d/out", "outdir"});

  // A name that became a link, or a pipe, after the walk.
  const auto root = SourceRoot::open(listing->root());
  REQUIRE(root.ok());
  std::string bytes;
  CHECK_FALSE(root->read("d/out", bytes).ok());
  CHECK_FALSE(root->read("outdir/secret", bytes).ok());
  CHECK_FALSE(root->read("pipe", bytes).ok());
  CHECK(root->read("d/a", bytes).ok());
  CHECK(bytes == "a");
  CHECK(*root->read("d/a", bytes) == listing->stamp(0));
}

TEST_CASE("a root can be a file or a link; a missing one is an error") {
  const test::TempDirectory folder;
  write(folder.path() / "d/a.lock", "text");
  fs::create_directory_symlink("d", folder.path() / "link");
  const auto file = walk_sources(folder.path() / "d/a.lock");
  REQUIRE(file.ok());
  CHECK(paths_of(*file) == Paths{"a.lock"});
  const auto link = walk_sources(folder.path() / "link", {.use_default_excludes = false});
  REQUIRE(link.ok());
  CHECK(paths_of(*link) == Paths{"a.lock"});
  CHECK_FALSE(walk_sources(folder.path() / "none").ok());
}

TEST_CASE("text is told from binary, UTF-8 is checked, line ends are made the same") {
  CHECK(looks_binary(std::string_view("a\0b", 3)));
  CHECK_FALSE(looks_binary(std::string(1024, 'a') + std::string(1, '\0')));
  CHECK_FALSE(looks_binary(""));
  for (const size_t at : {0u, 5u, 31u, 32u, 63u, 200u}) {
    std::string text(300, 'x');
    text.insert(at, "é😀");
    CHECK(is_utf8(text));
    text[at] = '\xFF';
    CHECK_FALSE(is_utf8(text));
  }
  CHECK_FALSE(is_utf8("abc\xE2\x82"));
  std::string scratch;
  CHECK(normalized_text("\xEF\xBB\xBF"
                        "a\r\nb\rc\n\r\r\n",
                        scratch) == "a\nb\nc\n\n\n");
  CHECK(normalized_text("\xEF\xBB\xBF", scratch).empty());
  CHECK(normalized_text("\r", scratch) == "\n");
  CHECK(normalized_text("plain\n", scratch) == "plain\n");
}

}  // namespace
}  // namespace lmemo
