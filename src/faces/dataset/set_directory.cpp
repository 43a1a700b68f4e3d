#include "faces/dataset/set_directory.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <thread>

#include "base/hex.h"
#include "faces/dataset/split_writer.h"
#include "sources/text_file.h"

namespace lmemo::dataset {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {kDatasetFolder, kMetadataFile, kTokenizerFolder};
constexpr std::chrono::milliseconds kLookInterval{50};
constexpr std::chrono::seconds kNoteInterval{5};
constexpr auto kNameInterval = std::chrono::milliseconds(500);

Status make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return errno_error(error.value(), "create", path);
  return {};
}

std::string unused_name(std::string_view prefix) {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32) | random();
  return std::string(prefix) + to_hex(number);
}

// Replaces whatever link is there by one rename.
Status point(const fs::path& link, const fs::path& target) {
  const fs::path fresh = link.parent_path() / unused_name(".link-");
  std::error_code error;
  fs::create_symlink(target, fresh, error);
  if (error)
    return Error{ErrorCode::io_error, "cannot make a symbolic link in " + link.parent_path().string() + ": " +
                                          error.message() +
                                          "; --output-dir has to be on a file system that has them"};
  const Status renamed = real_file_system().rename(fresh, link);
  if (!renamed.ok()) fs::remove(fresh, error);
  return renamed;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

}  // namespace

std::optional<fs::path> SetDirectory::current() const {
  std::error_code error;
  const fs::path name = fs::read_symlink(private_path() / "current", error);
  if (!error && name == name.filename() && fs::is_directory(private_path() / name, error))
    return private_path() / name;
  if (fs::is_regular_file(fs::symlink_status(directory_ / kMetadataFile, error))) return directory_;
  return std::nullopt;
}

Status SetDirectory::prepare() const {
  LMEMO_TRY(make_directories(directory_));
  std::error_code error;
  const bool is_copy = fs::is_regular_file(fs::symlink_status(directory_ / kMetadataFile, error));
  if (is_copy) {
    const Result<std::string> text = read_text_file(directory_ / kMetadataFile, uint64_t{64} << 20);
    if (!text.ok() || text->find("\"lmemo_dataset_format\"") == std::string::npos)
      return Error{ErrorCode::invalid_argument,
                   (directory_ / kMetadataFile).string() +
                       " was not written by lmemo; choose another output directory"};
  }
  for (const char* name : kNames) {
    const fs::file_status status = fs::symlink_status(directory_ / name, error);
    if (fs::exists(status) && !fs::is_symlink(status) && !is_copy)
      return Error{
          ErrorCode::invalid_argument,
          (directory_ / name).string() + " is there and is not lmemo's; choose another output directory"};
  }
  return make_directories(private_path());
}

Result<std::unique_ptr<FileLock>> SetDirectory::try_lock() const {
  LMEMO_ASSIGN(auto lock, real_file_system().try_lock(private_path() / "lock"));
  return lock;
}

Result<std::unique_ptr<FileLock>> SetDirectory::lock(const Watch& watch, const DatasetNote& note) const {
  const auto start = std::chrono::steady_clock::now();
  auto next_note = start;
  while (true) {
    auto lock = try_lock();
    if (lock.ok()) {
      // For the notes of those who wait; nobody relies on it.
      std::error_code ignored;
      const fs::path fresh = private_path() / unused_name(".builder-");
      if (write_whole_file(fresh, "process " + std::to_string(::getpid()) + " on " + host_name()).ok())
        fs::rename(fresh, private_path() / "builder", ignored);
      return lock;
    }
    if (lock.error().code != ErrorCode::busy) return lock.error();
    if (watch.stopped()) return Error{ErrorCode::interrupted, "while waiting for another builder"};
    const auto now = std::chrono::steady_clock::now();
    const Result<std::string> builder = read_text_file(private_path() / "builder", 4096);
    // Who just took the lock is about to say so.
    if (note && now >= next_note && (builder.ok() || now >= start + kNameInterval)) {
      next_note = now + kNoteInterval;
      note("waiting for " + (builder.ok() ? *builder : "another process") + ", which builds " +
           directory_.string());
    }
    std::this_thread::sleep_for(kLookInterval);
  }
}

void SetDirectory::remove_leftovers() const {
  std::error_code error;
  const fs::path kept = fs::read_symlink(private_path() / "current", error);
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(private_path(), error)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with("building-") || name.starts_with("set-") ||
                         name.starts_with("old-") || name.starts_with(".link-") ||
                         name.starts_with(".builder-") || name.starts_with("seen.json.");
    if (is_ours && name != kept) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) fs::remove_all(path, error);
}

Result<fs::path> SetDirectory::begin_set() const {
  const fs::path set = private_path() / unused_name("building-");
  LMEMO_TRY(make_directories(set));
  return set;
}

Status SetDirectory::make_links() const {
  std::error_code error;
  // A copy with files in place of links: they make room. The one moment without a set, and only there.
  const fs::path old = private_path() / unused_name("old-");
  for (const char* name : kNames) {
    const fs::path link = directory_ / name;
    const fs::path target = fs::path(".lmemo") / "current" / name;
    if (fs::read_symlink(link, error) == target && !error) continue;
    if (fs::exists(fs::symlink_status(link, error)) && !fs::is_symlink(fs::symlink_status(link, error))) {
      LMEMO_TRY(make_directories(old));
      LMEMO_TRY(real_file_system().rename(link, old / name));
    }
    LMEMO_TRY(point(link, target));
  }
  return real_file_system().sync_directory(directory_);
}

Status SetDirectory::publish(const fs::path& set) const {
  LMEMO_TRY(real_file_system().sync_directory(set));
  const fs::path name = unused_name("set-");
  LMEMO_TRY(real_file_system().rename(set, private_path() / name));
  LMEMO_TRY(real_file_system().sync_directory(private_path()));
  const fs::path current = private_path() / "current";
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(current, error)))  // Of a copy that has no links.
    LMEMO_TRY(real_file_system().rename(current, private_path() / unused_name("old-")));
  LMEMO_TRY(point(current, name));
  LMEMO_TRY(real_file_system().sync_directory(private_path()));
  LMEMO_TRY(make_links());
  remove_leftovers();
  return {};
}

}  // namespace lmemo::dataset
