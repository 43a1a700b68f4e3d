#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "support/forgetful_file_system.h"
#include "support/temp_directory.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

std::string text_in(FileSystem& files, const Path& path) {
  const auto mapping = files.map(path);
  REQUIRE(mapping.ok());
  REQUIRE(*mapping != nullptr);
  return std::string(text_of((*mapping)->bytes()));
}

Status append_text(WritableFile& file, std::string_view text) {
  const Bytes part = bytes_of(text);
  return file.append({&part, 1});
}

// The one in memory that other tests rely on behaves as the real one does.
void behaves_like_a_file_system(FileSystem& files, const Path& root) {
  const Path path = root / "file";
  CHECK(files.status(path)->type == FileType::missing);
  CHECK(*files.map(path) == nullptr);
  CHECK(*files.take_over(path) == nullptr);
  {
    const auto file = files.create(path);
    REQUIRE(file.ok());
    CHECK_FALSE(files.create(path).ok());
    CHECK(files.take_over(path).error().code == ErrorCode::busy);
    REQUIRE(append_text(**file, "hello, ").ok());
    const auto growing = *(*file)->map(4096);
    REQUIRE(append_text(**file, "world").ok());
    CHECK(text_of(growing->bytes().first(12)) == "hello, world");
    REQUIRE((*file)->truncate(5).ok());
    REQUIRE(append_text(**file, "!").ok());
    REQUIRE((*file)->sync().ok());
  }
  CHECK(text_in(files, path) == "hello!");
  CHECK(files.status(path)->byte_count == 6);
  {
    const auto taken = files.take_over(path);
    REQUIRE(taken.ok());
    REQUIRE((*taken)->truncate(4).ok());
    REQUIRE(append_text(**taken, "p").ok());
  }
  CHECK(text_in(files, path) == "hellp");

  const Path folder = root / "folder";
  REQUIRE(files.make_directory(folder).ok());
  REQUIRE(files.make_directory(folder).ok());
  CHECK_FALSE(files.make_directory(root / "no" / "parent").ok());
  REQUIRE(files.rename(path, folder / "moved").ok());
  CHECK_FALSE(files.rename(path, folder / "again").ok());
  CHECK(*files.list(folder) == std::vector<std::string>{"moved"});
  CHECK_FALSE(files.list(root / "nothing").ok());
  REQUIRE(files.sync_directory(folder).ok());
  CHECK_FALSE(files.sync_directory(root / "nothing").ok());
  const auto held = *files.map(folder / "moved");
  REQUIRE(files.remove(folder / "moved").ok());
  REQUIRE(files.remove(folder / "moved").ok());
  CHECK(text_of(held->bytes()) == "hellp");  // As long as somebody looks.

  auto lock = files.try_lock(root / "lock");
  REQUIRE(lock.ok());
  CHECK(files.try_lock(root / "lock").error().code == ErrorCode::busy);
  lock->reset();
  CHECK(files.try_lock(root / "lock").ok());
}

TEST_CASE("the real file system") {
  const TempDirectory directory;
  behaves_like_a_file_system(real_file_system(), directory.path());
}

TEST_CASE("the forgetful file system is a file system") {
  ForgetfulFileSystem files;
  behaves_like_a_file_system(files, "/");
}

TEST_CASE("many parts arrive in order, more than one system call takes") {
  const TempDirectory directory;
  std::vector<std::string> texts;
  std::string all;
  for (int i = 0; i < 3000; ++i) all += texts.emplace_back(std::to_string(i) + std::string(i % 50, '.'));
  std::vector<Bytes> parts;
  for (const std::string& text : texts) parts.push_back(bytes_of(text));
  const auto file = real_file_system().create(directory / "file");
  REQUIRE((*file)->append(parts).ok());
  CHECK(text_in(real_file_system(), directory / "file") == all);
}

TEST_CASE("links, pipes and directories are not opened as files") {
  const TempDirectory directory;
  FileSystem& files = real_file_system();
  std::ofstream(directory / "target") << "secret";
  fs::create_symlink(directory / "target", directory / "link");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  fs::create_directory(directory / "folder");
  for (const char* name : {"link", "pipe", "folder"}) {
    CAPTURE(name);
    CHECK_FALSE(files.map(directory / name).ok());
    CHECK_FALSE(files.take_over(directory / name).ok());
    CHECK_FALSE(files.create(directory / name).ok());
  }
  CHECK(files.status(directory / "link")->type == FileType::other);
  CHECK(files.status(directory / "pipe")->type == FileType::other);
  fs::create_directory_symlink(directory / "folder", directory / "folder link");
  CHECK_FALSE(files.list(directory / "folder link").ok());
  CHECK_FALSE(files.sync_directory(directory / "folder link").ok());
}

TEST_CASE("a file with a second name is not taken over") {
  const TempDirectory directory;
  std::ofstream(directory / "one") << "text";
  fs::create_hard_link(directory / "one", directory / "two");
  CHECK(real_file_system().take_over(directory / "two").error().code == ErrorCode::io_error);
}

TEST_CASE("what is printed to closed standard streams does not land in a file of ours") {
  const TempDirectory directory;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
    const auto file = real_file_system().create(directory / "file");
    const bool is_written = append_text(**file, "ours").ok();
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (::write(stream, "note", 4) >= 0) ::_exit(1);
    ::_exit(is_written ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(text_in(real_file_system(), directory / "file") == "ours");
}

TEST_CASE("a full disk has a code of its own, and every message names the file") {
  CHECK(errno_error(ENOSPC, "write", "/a/b").code == ErrorCode::no_space);
  CHECK(errno_error(EDQUOT, "write", "/a/b").code == ErrorCode::no_space);
  CHECK(errno_error(EIO, "write", "/a/b").message == "cannot write /a/b: Input/output error");
}

}  // namespace
}  // namespace lmemo::test
