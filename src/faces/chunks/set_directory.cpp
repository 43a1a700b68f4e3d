#include "faces/chunks/set_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/byte_reader.h"
#include "store/segment.h"

namespace lmemo::chunks {
namespace {

constexpr std::string_view kRegistryKind = "chunks.registry";
constexpr uint32_t kRegistryVersion = 1;

Error damaged() { return {ErrorCode::corruption, "the registry of chunks is damaged"}; }

// As it lies in the file; the version changes with it.
struct StoredEntry {
  uint64_t number, bytes;
  int64_t modified_ns;
  ChunkCounts counts;
  uint32_t blocks, rows_per_block;
  Digest sha256, content_sha256, key;
};
static_assert(std::is_trivially_copyable_v<StoredEntry> && sizeof(StoredEntry) == 24 + 88 + 8 + 96);

Status write_registry(const SetPaths& paths, const Registry& registry) {
  FileSystem& files = real_file_system();
  const Path temporary = paths.writing() / ("registry." + std::to_string(::getpid()));
  LMEMO_TRY(files.remove(temporary));
  LMEMO_ASSIGN(const Key key, Key::of(kRegistryKind, {}));
  const std::string value = encode_registry(registry);
  const NewRecord record{RecordType::value, key.digest(), text_of(key.encoding()), bytes_of(value), 0, 0};
  LMEMO_ASSIGN(const auto writer, SegmentWriter::create(files, temporary, 1, 0, value.size() + 4096));
  LMEMO_TRY(writer->append({&record, 1}));
  LMEMO_TRY(writer->seal());
  return files.rename(temporary, paths.registry());
}

}  // namespace

std::string SetPaths::name_of_chunk(uint64_t number) {
  char name[40];
  std::snprintf(name, sizeof name, "%06llu.chunk", static_cast<unsigned long long>(number));
  return name;
}

std::optional<uint64_t> SetPaths::number_of_chunk(std::string_view name) {
  if (!name.ends_with(".chunk") || name.size() < 12 || name.size() > 6 + 18) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : name.substr(0, name.size() - 6)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  if (name_of_chunk(number) != name) return std::nullopt;
  return number;
}

Status SetPaths::make() const {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Error{ErrorCode::io_error, "cannot make " + directory.string() + ": " + error.message()};
  for (const Path& path : {chunks(), writing()}) LMEMO_TRY(real_file_system().make_directory(path));
  return {};
}

Status SetPaths::check_is_ours() const {
  FileSystem& files = real_file_system();
  LMEMO_ASSIGN(const FileStatus status, files.status(directory));
  if (status.type == FileType::missing) return {};
  if (status.type != FileType::directory)
    return Error{ErrorCode::invalid_argument, directory.string() + " is no directory; name a new one"};
  LMEMO_ASSIGN(const std::vector<std::string> names, files.list(directory));
  std::string other;
  for (const std::string& name : names) {
    if (name == "chunks" || name == "plan" || name == "imported") return {};
    if (!name.starts_with(".")) other = name;
  }
  if (other.empty()) return {};
  return Error{ErrorCode::invalid_argument, directory.string() + " has no chunks but " + other +
                                                " in it; name a new directory, or an empty one"};
}

std::string encode_registry(const Registry& registry) {
  std::string value;
  value.reserve(16 + registry.size() * sizeof(StoredEntry));
  append_le(value, kRegistryVersion);
  append_le(value, static_cast<uint32_t>(registry.size()));
  for (const auto& [number, entry] : registry)
    append_le(value, StoredEntry{number, entry.bytes, entry.modified_ns, entry.counts, entry.blocks,
                                 entry.rows_per_block, entry.sha256, entry.content_sha256, entry.key});
  return value;
}

Result<Registry> decode_registry(Bytes value) {
  ByteReader reader(value);
  const auto version = reader.read<uint32_t>(), count = reader.read<uint32_t>();
  if (version != kRegistryVersion || reader.left() != count * sizeof(StoredEntry)) return damaged();
  Registry registry;
  for (uint32_t at = 0; at < count; ++at) {
    const auto stored = reader.read<StoredEntry>();
    registry.emplace_hint(
        registry.end(), stored.number,
        RegistryEntry{stored.number, stored.bytes, stored.modified_ns, stored.counts, stored.blocks,
                      stored.rows_per_block, stored.sha256, stored.content_sha256, stored.key});
  }
  return registry;
}

Registry load_registry(const SetPaths& paths) {
  const auto segment = Segment::open(real_file_system(), paths.registry());
  if (!segment.ok() || !*segment || (*segment)->entries().size() != 1) return {};
  const std::optional<RecordView> record = (*segment)->checked_record(0);
  if (!record) return {};
  auto registry = decode_registry(record->value);
  return registry.ok() ? std::move(registry).value() : Registry();
}

Status update_registry(const SetPaths& paths, const Registry& entries, const std::vector<uint64_t>& gone) {
  // Somebody who writes it now is done in a moment. Whoever cannot get it leaves it: it is made anew from the chunks.
  for (int attempt = 0; attempt < 500; ++attempt) {
    auto lock = real_file_system().try_lock(paths.directory / "registry.lock");
    if (!lock.ok() && lock.error().code != ErrorCode::busy) return lock.error();
    if (!lock.ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    Registry registry = load_registry(paths);
    for (const uint64_t number : gone) registry.erase(number);
    for (const auto& [number, entry] : entries) registry[number] = entry;
    return write_registry(paths, registry);
  }
  return Error{ErrorCode::busy, "the registry of " + paths.directory.string() + " is busy"};
}

Result<std::vector<FoundChunk>> list_chunks(const SetPaths& paths) {
  // By hand, one fstatat each: 100,000 chunks are looked at in a fifth of a second.
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(paths.chunks().c_str()), &::closedir);
  if (!listing) {
    if (errno == ENOENT) return std::vector<FoundChunk>();
    return errno_error(errno, "list", paths.chunks());
  }
  std::vector<FoundChunk> found;
  errno = 0;
  while (const dirent* const item = ::readdir(listing.get())) {
    const std::optional<uint64_t> number = SetPaths::number_of_chunk(item->d_name);
    struct stat status;
    if (number && ::fstatat(::dirfd(listing.get()), item->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      found.push_back({*number, static_cast<uint64_t>(status.st_size),
                       int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
    errno = 0;
  }
  if (errno != 0) return errno_error(errno, "list", paths.chunks());
  std::sort(found.begin(), found.end(),
            [](const FoundChunk& a, const FoundChunk& b) { return a.number < b.number; });
  return found;
}

Result<RegistryEntry> describe_chunk(const SetPaths& paths, const FoundChunk& found) {
  LMEMO_ASSIGN(const auto file, ChunkFile::open(paths.chunk(found.number)));
  if (file->number() != found.number)
    return Error{ErrorCode::corruption,
                 paths.chunk(found.number).string() + " holds chunk " + std::to_string(file->number())};
  RegistryEntry entry;
  entry.number = found.number;
  entry.bytes = found.bytes;
  entry.modified_ns = found.modified_ns;
  entry.counts = file->counts();
  entry.blocks = file->block_count();
  entry.rows_per_block = file->rows_per_block();
  entry.content_sha256 = file->content_sha256();
  entry.key = file->plan_entry();
  return entry;
}

}  // namespace lmemo::chunks
