#include "sources/stat_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/little_endian.h"
#include "codec/checksum.h"

namespace lmemo {
namespace {

constexpr int64_t kRacyWindowNs = 2'000'000'000;
constexpr std::string_view kMagic = "lmemstat";
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint64_t checksum;  // Of everything behind it.
  uint32_t version;
  uint32_t label_bytes;
  uint64_t entry_count;
  uint64_t path_bytes;
  Digest owner;
};
static_assert(sizeof(Header) == 72);
constexpr size_t kChecked = 16;  // From here on.

struct StoredEntry {
  FileStamp stamp;
  Digest content;
  Digest note;
  uint64_t number;
  uint64_t path_at;
  uint32_t path_bytes;
  uint16_t verdict;
  uint16_t is_racy;
};
static_assert(sizeof(StoredEntry) == 120 && std::is_trivially_copyable_v<StoredEntry>);

}  // namespace

bool is_racy(const FileStamp& stamp, int64_t looked_at_ns) {
  return std::max(stamp.modified_ns, stamp.changed_ns) > looked_at_ns - kRacyWindowNs;
}

std::shared_ptr<const StatMemory> StatMemory::load_any(const std::filesystem::path& file) {
  Result<std::shared_ptr<const MappedFile>> mapped = real_file_system().map(file);
  if (!mapped.ok() || !*mapped) return nullptr;
  std::shared_ptr<StatMemory> memory(new StatMemory);
  return memory->read(std::move(*mapped)) ? memory : nullptr;
}

std::shared_ptr<const StatMemory> StatMemory::load(const std::filesystem::path& file, const Digest& owner) {
  std::shared_ptr<const StatMemory> memory = load_any(file);
  return memory && memory->owner() == owner ? memory : nullptr;
}

bool StatMemory::read(std::shared_ptr<const MappedFile> file) {
  const Bytes bytes = file->bytes();
  if (bytes.size() < sizeof(Header)) return false;
  const auto header = load_le<Header>(bytes.data());
  if (std::string_view(header.magic, sizeof header.magic) != kMagic || header.version != kVersion)
    return false;
  uint64_t left = bytes.size() - sizeof(Header);
  if (header.label_bytes > left) return false;
  left -= header.label_bytes;
  if (header.entry_count > left / sizeof(StoredEntry)) return false;
  left -= header.entry_count * sizeof(StoredEntry);
  if (header.path_bytes != left || checksum(bytes.subspan(kChecked)) != header.checksum) return false;
  owner_ = header.owner;
  label_ = text_of(bytes.subspan(sizeof(Header), header.label_bytes));
  entries_ = bytes.data() + sizeof(Header) + header.label_bytes;
  paths_ = text_of(bytes.last(header.path_bytes));
  count_ = header.entry_count;
  // A sound checksum does not make a sound writer.
  for (size_t i = 0; i < count_; ++i) {
    const auto entry = load_le<StoredEntry>(entries_ + i * sizeof(StoredEntry));
    if (entry.path_at > paths_.size() || entry.path_bytes > paths_.size() - entry.path_at ||
        entry.verdict > 2)
      return false;
  }
  file_ = std::move(file);
  return true;
}

StatEntry StatMemory::entry(size_t index) const {
  const auto stored = load_le<StoredEntry>(entries_ + index * sizeof(StoredEntry));
  return {stored.stamp,  stored.content, stored.note, stored.number, static_cast<FileVerdict>(stored.verdict),
          stored.is_racy};
}

std::string_view StatMemory::path(size_t index) const {
  const std::byte* const entry = entries_ + index * sizeof(StoredEntry);
  return paths_.substr(load_le<uint64_t>(entry + offsetof(StoredEntry, path_at)),
                       load_le<uint32_t>(entry + offsetof(StoredEntry, path_bytes)));
}

std::optional<size_t> StatMemoryCursor::at(std::string_view path) {
  if (memory_ == nullptr) return std::nullopt;
  for (; next_ < memory_->size(); ++next_) {
    const auto order = memory_->path(next_) <=> path;
    if (order == 0) return next_++;
    if (order > 0) break;
  }
  return std::nullopt;
}

void StatMemoryWriter::reserve(size_t entries, size_t path_bytes) {
  entries_.reserve(entries * sizeof(StoredEntry));
  paths_.reserve(path_bytes);
}

void StatMemoryWriter::add(std::string_view path, const StatEntry& entry) {
  append_le(entries_, StoredEntry{entry.stamp, entry.content, entry.note, entry.number, paths_.size(),
                                  static_cast<uint32_t>(path.size()), static_cast<uint16_t>(entry.verdict),
                                  static_cast<uint16_t>(entry.is_racy)});
  paths_ += path;
  ++count_;
}

Status StatMemoryWriter::write(const std::filesystem::path& file) const {
  Header header{};
  kMagic.copy(header.magic, sizeof header.magic);
  header.version = kVersion;
  header.label_bytes = static_cast<uint32_t>(label_.size());
  header.entry_count = count_;
  header.path_bytes = paths_.size();
  header.owner = owner_;
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  header.checksum =
      checksum({bytes_of(head.substr(kChecked)), bytes_of(label_), bytes_of(entries_), bytes_of(paths_)}, 0);

  FileSystem& files = real_file_system();
  static std::atomic<uint64_t> drafts{0};  // Two threads may write one memory at once.
  const std::filesystem::path draft =
      file.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(++drafts) + ".draft";
  LMEMO_TRY(files.remove(draft));  // Left by a dead process that had our number.
  LMEMO_ASSIGN(std::unique_ptr<WritableFile> out, files.create(draft));
  const std::array<Bytes, 4> parts = {bytes_of(head), bytes_of(label_), bytes_of(entries_), bytes_of(paths_)};
  Status status = out->append(parts);
  out.reset();
  if (status.ok()) status = files.rename(draft, file);
  if (!status.ok()) (void)files.remove(draft);
  return status;
}

}  // namespace lmemo
