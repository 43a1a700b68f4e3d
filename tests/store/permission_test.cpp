// The disk says no in the middle of the work: a directory made read-only or given to somebody else, a full disk, no
// more descriptors. The work goes on, what was stored is found, the user hears it once, and puts work again later.
//
// Permissions do not bind root: where tests run as root, the work is done by a child that is nobody.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <system_error>
#include <thread>

#include "store/mixed_load.h"
#include "support/temp_directory.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;
constexpr unsigned kWatchdogSeconds = 120;
const LoadShape kShape;

std::string value_of(uint32_t number) { return versioned_value(load_key(kShape, number), 1); }
bool put(Store& store, uint32_t number) {
  return store.put(load_key(kShape, number), bytes_of(value_of(number))).ok();
}
bool has(Store& store, uint32_t number) {
  const std::optional<Hit> hit = store.find(load_key(kShape, number));
  return hit && text_of(hit->value()) == value_of(number);
}
bool has_all(Store& store, uint32_t end) {
  for (uint32_t number = 0; number < end; ++number)
    if (!has(store, number)) return false;
  return true;
}

// A story told in a child process: each claim that does not hold is named, and the first ends the child.
class Story {
 public:
  void claim(bool is_true, const std::string& what) const {
    if (is_true) return;
    std::fprintf(stderr, "permission_test: not true: %s\n", what.c_str());
    ::_exit(1);
  }
};

// Runs in a child with nobody's rights. The two sides take turns: whatever the child waits for, the test does.
class Nobody {
 public:
  explicit Nobody(const std::function<void(const Story&, const std::function<void()>& next_turn)>& story) {
    int down[2], up[2];
    REQUIRE(::pipe2(down, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(up, O_CLOEXEC) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(down[1]), ::close(up[0]);
      ::alarm(kWatchdogSeconds);
      const Story claims;
      if (::geteuid() == 0)
        claims.claim(
            ::setresgid(kNobody, kNobody, kNobody) == 0 && ::setresuid(kNobody, kNobody, kNobody) == 0,
            "nobody");
      story(claims, [&] {
        char byte = 0;
        claims.claim(::write(up[1], &byte, 1) == 1 && ::read(down[0], &byte, 1) == 1, "a turn of the test");
      });
      ::_exit(0);
    }
    ::close(down[0]), ::close(up[1]);
    to_ = down[1], from_ = up[0];
  }
  // Waits until the child wants the test to act; false if it ended instead.
  bool wants_a_turn() {
    char byte;
    return ::read(from_, &byte, 1) == 1;
  }
  void give_turn() {
    const char byte = 0;
    REQUIRE(::write(to_, &byte, 1) == 1);
  }
  int exit_code() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    ::close(to_), ::close(from_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

// After a failure puts are refused for a while. The watchdog ends a wait that does not end.
template <typename Done>
void wait_until(Done done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

StoreOptions options_with(std::vector<Notice>& notices) {
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  options.refresh_seconds = 0.001;
  options.on_notice = [&](const Notice& notice) { notices.push_back(notice); };
  return options;
}

// `take` and `give_back` are done by the test, which may be root, in the middle of the child's work.
void work_while_permissions_go(const TempDirectory& directory, const std::function<void()>& take,
                               const std::function<void()>& give_back) {
  const fs::path path = directory / "store";
  Nobody child([&](const Story& story, const std::function<void()>& next_turn) {
    std::vector<Notice> notices;
    auto store = open_store(path, options_with(notices));
    story.claim(store.ok(), "opens");
    for (uint32_t number = 0; number < 200; ++number) story.claim(put(**store, number), "puts");
    story.claim((*store)->flush().ok(), "flushes");
    story.claim(put(**store, 200), "puts one more, unpublished");

    next_turn();  // The permissions go.
    story.claim(!(*store)->flush().ok(), "flush says that it failed");
    uint32_t failed = 0;
    for (uint32_t number = 1000; number < 1200; ++number) failed += !put(**store, number);
    story.claim(failed == 200, "every put fails and says so");
    story.claim(has_all(**store, 201), "everything is still found, the unpublished one too");
    story.claim(!(*store)->compact().ok(), "compact says that it failed");
    story.claim((*store)->stats().failed_puts == 200, "lost chances are counted");
    story.claim(notices.size() == 1, std::to_string(notices.size()) + " notices, expected one");
    story.claim(notices[0].message.find("store") != std::string::npos, "the notice names the place");

    next_turn();  // They come back.
    uint32_t number = 201;
    wait_until([&] { return put(**store, number); });
    for (++number; number < 300; ++number) story.claim(put(**store, number), "puts again");
    story.claim((*store)->flush().ok(), "flushes again");
    story.claim(has_all(**store, 300), "nothing was lost");
    story.claim(notices.size() == 1, "nothing is told twice");
  });
  REQUIRE(child.wants_a_turn());
  take();
  child.give_turn();
  const bool went_on = child.wants_a_turn();
  give_back();
  if (went_on) child.give_turn();
  CHECK(child.exit_code() == 0);

  std::vector<Notice> notices;
  auto store = open_store(path, options_with(notices));
  REQUIRE(store.ok());
  CHECK(has_all(**store, 300));
  CHECK((*store)->stats().entries == 300);
  CHECK(notices.empty());
  const Result<VerifyReport> verified = (*store)->verify();
  REQUIRE(verified.ok());
  CHECK(verified->is_clean());
}

void for_each_directory(const fs::path& path, const std::function<void(const char*)>& act) {
  for (const fs::path& each : {path, path / "segments", path / "writing"}) act(each.c_str());
}

TEST_CASE("a store whose directory becomes read-only costs later hits, not the work") {
  const TempDirectory directory;
  const fs::path path = directory / "store";
  ::chmod(directory.path().c_str(), 0777);
  work_while_permissions_go(
      directory,
      [&] { for_each_directory(path, [](const char* each) { REQUIRE(::chmod(each, 0555) == 0); }); },
      [&] { for_each_directory(path, [](const char* each) { REQUIRE(::chmod(each, 0755) == 0); }); });
}

TEST_CASE("a store whose directory is given to somebody else costs later hits, not the work") {
  if (::geteuid() != 0) {
    MESSAGE("not run: only root can give a directory away");
    return;
  }
  const TempDirectory directory;
  const fs::path path = directory / "store";
  ::chmod(directory.path().c_str(), 0777);
  work_while_permissions_go(
      directory,
      [&] { for_each_directory(path, [](const char* each) { REQUIRE(::chown(each, 0, 0) == 0); }); },
      [&] {
        for_each_directory(path, [](const char* each) { REQUIRE(::chown(each, kNobody, kNobody) == 0); });
      });
}

TEST_CASE("a store that cannot even be looked at any more still serves what it has") {
  const TempDirectory directory;
  const fs::path path = directory / "store";
  ::chmod(directory.path().c_str(), 0777);
  work_while_permissions_go(
      directory, [&] { REQUIRE(::chmod(path.c_str(), 0) == 0); },
      [&] { REQUIRE(::chmod(path.c_str(), 0755) == 0); });
}

TEST_CASE("somebody who may only read finds everything and is told why nothing can be put") {
  const TempDirectory directory;
  const fs::path path = directory / "store";
  ::chmod(directory.path().c_str(), 0755);
  {
    std::vector<Notice> notices;
    auto store = open_store(path, options_with(notices));
    REQUIRE(store.ok());
    for (uint32_t number = 0; number < 50; ++number) REQUIRE(put(**store, number));
  }
  for_each_directory(path, [](const char* each) { REQUIRE(::chmod(each, 0555) == 0); });
  Nobody child([&](const Story& story, const std::function<void()>&) {
    std::vector<Notice> notices;
    auto store = open_store(path, options_with(notices));
    story.claim(store.ok(), "opens");
    story.claim(has_all(**store, 50), "finds");
    story.claim(!put(**store, 50) && !put(**store, 51), "puts fail");
    story.claim(notices.size() == 1, std::to_string(notices.size()) + " notices, expected one");
    story.claim(notices[0].code == ErrorCode::io_error, "an io_error");
    StoreOptions reading;
    reading.read_only = true;
    auto reader = open_store(path, reading);
    story.claim(reader.ok() && has_all(**reader, 50), "reads read-only");
  });
  CHECK_FALSE(child.wants_a_turn());
  CHECK(child.exit_code() == 0);
}

// What holds when writes begin to fail and later work again, whatever the reason.
void work_while_writes_fail(const Story& story, const fs::path& path, const std::function<void()>& break_it,
                            const std::function<void()>& mend_it, ErrorCode expected) {
  std::vector<Notice> notices;
  uint32_t count = 0;
  {
    auto store = open_store(path, options_with(notices));
    story.claim(store.ok(), "opens");
    for (; count < 100; ++count) story.claim(put(**store, count), "puts");
    story.claim((*store)->flush().ok(), "flushes");
    break_it();
    // Until the first one fails: up to there all count as put.
    while (put(**store, count)) ++count;
    story.claim(has_all(**store, count), "what was put is found while nothing can be written");
    story.claim(!put(**store, 100'000), "the next put fails too");
    story.claim(notices.size() == 1, std::to_string(notices.size()) + " notices, expected one: " +
                                         (notices.empty() ? "" : notices.back().message));
    story.claim(notices[0].code == expected, "code of " + notices[0].message);
    mend_it();
    wait_until([&] { return put(**store, count); });
    ++count;
    wait_until([&] { return (*store)->flush().ok(); });
    story.claim(has_all(**store, count), "everything is found after it was mended");
  }
  auto store = open_store(path, options_with(notices));
  story.claim(store.ok() && has_all(**store, count), "and by the next one who opens the store");
  story.claim((*store)->stats().entries == count, "and nothing else");
  story.claim((*store)->verify()->is_clean(), "and it is clean");
}

// A small disk of its own, where that is allowed.
bool mount_small_disk(const TempDirectory& directory) {
  const bool is_mounted =
      ::geteuid() == 0 && ::mount("lmemo-test", directory.path().c_str(), "tmpfs", 0, "size=3m") == 0;
  if (!is_mounted) MESSAGE("not run: cannot mount a tmpfs here");
  return is_mounted;
}

// To the last page.
void fill_disk(const std::string& ballast) {
  const int file = ::open(ballast.c_str(), O_CREAT | O_WRONLY, 0600);
  const std::string block(4096, 'x');
  while (::write(file, block.data(), block.size()) > 0) {}
  ::close(file);
}

TEST_CASE("evict makes room on a disk that the store has filled to the last page") {
  const TempDirectory directory;
  if (!mount_small_disk(directory)) return;
  std::vector<Notice> notices;
  uint32_t count = 0;
  {
    auto store = open_store(directory / "store", options_with(notices));
    REQUIRE(store.ok());
    while (put(**store, count)) ++count;
    fill_disk(directory / "ballast");
  }
  {
    auto store = open_store(directory / "store", options_with(notices));
    REQUIRE(store.ok());
    const auto report = (*store)->evict(1 << 20);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    CHECK(report->disk_bytes_after < report->disk_bytes_before / 2);
    CHECK(has(**store, count - 1));  // The newest.
    CHECK(put(**store, count));
    CHECK((*store)->flush().ok());
    CHECK((*store)->verify()->is_clean());
  }
  REQUIRE(::umount(directory.path().c_str()) == 0);
}

TEST_CASE("a disk that is full costs later hits, not the work") {
  const TempDirectory directory;
  if (!mount_small_disk(directory)) return;  // The case of the file size limit stands for it.
  ::chmod(directory.path().c_str(), 0777);
  const std::string ballast = directory / "ballast";
  Nobody child([&](const Story& story, const std::function<void()>&) {
    work_while_writes_fail(
        story, directory / "store", [&] { fill_disk(ballast); }, [&] { ::unlink(ballast.c_str()); },
        ErrorCode::no_space);
  });
  CHECK_FALSE(child.wants_a_turn());
  CHECK(child.exit_code() == 0);
  REQUIRE(::umount(directory.path().c_str()) == 0);
}

TEST_CASE("a limit on the size of files costs later hits, not the work") {
  const TempDirectory directory;
  ::chmod(directory.path().c_str(), 0777);
  Nobody child([&](const Story& story, const std::function<void()>&) {
    ::signal(SIGXFSZ, SIG_IGN);  // The write then says EFBIG.
    rlimit limit;
    ::getrlimit(RLIMIT_FSIZE, &limit);
    work_while_writes_fail(
        story, directory / "store",
        [&] {
          rlimit small = limit;
          small.rlim_cur = 20'000;
          ::setrlimit(RLIMIT_FSIZE, &small);
        },
        [&] { ::setrlimit(RLIMIT_FSIZE, &limit); }, ErrorCode::no_space);
  });
  CHECK_FALSE(child.wants_a_turn());
  CHECK(child.exit_code() == 0);
}

TEST_CASE("a process without free descriptors finds what it has, and goes on when it has some again") {
  const TempDirectory directory;
  ::chmod(directory.path().c_str(), 0777);
  Nobody child([&](const Story& story, const std::function<void()>&) {
    std::vector<int> hoard;
    work_while_writes_fail(
        story, directory / "store",
        [&] {
          // UBSan looks at each class of objects once, and needs descriptors for that: let it see this one now.
          story.claim(!std::generic_category().message(EMFILE).empty(), "errors have names");
          rlimit limit;
          ::getrlimit(RLIMIT_NOFILE, &limit);
          limit.rlim_cur = 40;
          ::setrlimit(RLIMIT_NOFILE, &limit);
          for (int file = ::open("/dev/null", O_RDONLY); file >= 0; file = ::open("/dev/null", O_RDONLY))
            hoard.push_back(file);
        },
        [&] {
          for (const int file : hoard) ::close(file);
        },
        ErrorCode::io_error);
  });
  CHECK_FALSE(child.wants_a_turn());
  CHECK(child.exit_code() == 0);
}

TEST_CASE("a store of many segments needs few descriptors") {
  const TempDirectory directory;
  ::chmod(directory.path().c_str(), 0777);
  Nobody child([&](const Story& story, const std::function<void()>&) {
    rlimit limit;
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 32;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<Notice> notices;
    auto store = open_store(directory / "store", options_with(notices));
    story.claim(store.ok(), "opens");
    std::vector<Hit> held;
    for (uint32_t number = 0; number < 100; ++number) {
      story.claim(put(**store, number), "puts");
      // Held views must not hold descriptors.
      std::optional<Hit> hit = (*store)->find(load_key(kShape, number));
      story.claim(hit.has_value(), "finds");
      held.push_back(*hit);
      story.claim((*store)->flush().ok(), "flushes");
    }
    for (uint32_t number = 0; number < 100; ++number)
      story.claim(text_of(held[number].value()) == value_of(number), "views stay good");
    story.claim(notices.empty(), "without a word");
  });
  CHECK_FALSE(child.wants_a_turn());
  CHECK(child.exit_code() == 0);
}

}  // namespace
}  // namespace lmemo::test
