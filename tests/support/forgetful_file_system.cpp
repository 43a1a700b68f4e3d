#include "support/forgetful_file_system.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace lmemo::test {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kMaxFileBytes = size_t{8} << 20;

// Memory that does not move while a file grows under its reader; pages come when they are touched.
class Region {
 public:
  Region() {
    void* address = ::mmap(nullptr, kMaxFileBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::runtime_error("no memory for a test file");
    bytes_ = static_cast<std::byte*>(address);
  }
  ~Region() { ::munmap(bytes_, kMaxFileBytes); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  std::byte* bytes() const { return bytes_; }

 private:
  std::byte* bytes_;
};

class CopiedFile
    : public MappedFile {  // Of exactly the file's size, so that a sanitizer sees who reads past it.
 public:
  explicit CopiedFile(Bytes bytes) : copy_(bytes.begin(), bytes.end()) { bytes_ = copy_; }

 private:
  std::vector<std::byte> copy_;
};

}  // namespace

struct ForgetfulFileSystem::Inode {
  bool is_directory = false;
  bool is_locked = false;
  int64_t modified_ns = 0;
  std::unique_ptr<Region> region;  // Null until something is written.
  size_t byte_count = 0;
  std::string synced;  // What the disk holds for sure.
  // Where a sync failed: the kernel forgot that these blocks are dirty.
  std::vector<bool> forgotten_blocks;

  Bytes bytes() const { return region ? Bytes(region->bytes(), byte_count) : Bytes(); }
  void set(std::string_view text) {
    resize(0);
    write(bytes_of(text));
  }
  void write(Bytes more) {
    if (more.empty()) return;
    if (!region) region = std::make_unique<Region>();
    if (more.size() > kMaxFileBytes - byte_count) throw std::runtime_error("test file too large");
    std::memcpy(region->bytes() + byte_count, more.data(), more.size());
    for (size_t block = byte_count / kBlockBytes; block * kBlockBytes < byte_count + more.size(); ++block)
      if (block < forgotten_blocks.size()) forgotten_blocks[block] = false;
    byte_count += more.size();
  }
  void resize(size_t size) {
    if (size > byte_count) write(std::vector<std::byte>(size - byte_count));
    byte_count = size;
  }
  std::string_view block_of(std::string_view text, size_t block) const {
    return block * kBlockBytes < text.size() ? text.substr(block * kBlockBytes, kBlockBytes)
                                             : std::string_view();
  }
  void sync() {
    const std::string now(text_of(bytes()));
    std::string after = now;
    for (size_t block = 0; block < forgotten_blocks.size(); ++block)
      if (forgotten_blocks[block])
        for (size_t i = block * kBlockBytes; i < std::min(after.size(), (block + 1) * kBlockBytes); ++i)
          after[i] = i < synced.size() ? synced[i] : '\0';
    synced = after;
  }
  // The bytes after a power cut.
  std::string remains(PowerCut::Data how, std::mt19937_64& random) const {
    const std::string_view now = text_of(bytes());
    if (now == synced) return synced;
    using Data = PowerCut::Data;
    const auto pick_one = [&] { return how == Data::mixed ? static_cast<Data>(random() % 4) : how; };
    size_t size = now.size();
    if (how == Data::lost || (how == Data::mixed && random() % 4 == 0))
      size = synced.size();
    else if (how == Data::mixed && now.size() > synced.size() && random() % 2 == 0)
      size = synced.size() + random() % (now.size() - synced.size() + 1);
    std::string result(size, '\0');
    for (size_t block = 0; block * kBlockBytes < size; ++block) {
      const bool is_safe = block_of(now, block) == block_of(synced, block) ||
                           (block < forgotten_blocks.size() && forgotten_blocks[block]);
      const Data fate = is_safe ? Data::lost : pick_one();
      for (size_t i = block * kBlockBytes; i < std::min(size, (block + 1) * kBlockBytes); ++i) {
        const char before = i < synced.size() ? synced[i] : '\0', after = i < now.size() ? now[i] : before;
        switch (fate) {
          case Data::kept: result[i] = after; break;
          case Data::lost: result[i] = before; break;
          case Data::zeroed: result[i] = i < synced.size() ? before : '\0'; break;
          // A sector that was synced and not written since is never touched.
          default: result[i] = after == before ? after : static_cast<char>(random()); break;
        }
      }
    }
    return result;
  }
};

class ForgetfulFile : public WritableFile {
 public:
  ForgetfulFile(ForgetfulFileSystem& files, ForgetfulFileSystem::InodePtr inode)
      : files_(files), inode_(std::move(inode)) {
    inode_->is_locked = true;
  }
  ~ForgetfulFile() override { inode_->is_locked = false; }

  Status append(std::span<const Bytes> parts) override {
    for (const Bytes part : parts) inode_->write(part);
    files_.changed();
    return {};
  }
  Status truncate(uint64_t byte_count) override {
    inode_->resize(byte_count);
    files_.changed();
    return {};
  }
  Status sync() override {
    inode_->sync();
    files_.changed();
    return {};
  }
  void start_writeback(uint64_t, uint64_t) override {}
  Result<std::shared_ptr<const MappedFile>> map(uint64_t capacity) override {
    class GrowingFile : public MappedFile {
     public:
      GrowingFile(ForgetfulFileSystem::InodePtr inode, uint64_t capacity) : inode_(std::move(inode)) {
        bytes_ = {inode_->region->bytes(), capacity};
      }

     private:
      ForgetfulFileSystem::InodePtr inode_;
    };
    if (!inode_->region) inode_->region = std::make_unique<Region>();
    if (capacity > kMaxFileBytes) throw std::runtime_error("test file too large: set segment_bytes");
    return std::shared_ptr<const MappedFile>(std::make_shared<GrowingFile>(inode_, capacity));
  }

 private:
  ForgetfulFileSystem& files_;
  const ForgetfulFileSystem::InodePtr inode_;
};

class ForgetfulLock : public FileLock {
 public:
  explicit ForgetfulLock(ForgetfulFileSystem::InodePtr inode) : inode_(std::move(inode)) {
    inode_->is_locked = true;
  }
  ~ForgetfulLock() override { inode_->is_locked = false; }

 private:
  const ForgetfulFileSystem::InodePtr inode_;
};

std::vector<PowerCut> PowerCut::samples(uint64_t mixtures, uint64_t seed) {
  std::vector<PowerCut> cuts;
  for (const Names names : {Names::kept, Names::reverted})
    for (const Data data : {Data::kept, Data::lost, Data::zeroed, Data::garbage})
      cuts.push_back({names, data, seed});
  for (uint64_t i = 0; i < mixtures; ++i) cuts.push_back({Names::mixed, Data::mixed, seed * 1000 + i});
  return cuts;
}

std::string PowerCut::describe() const {
  const char* const name_words[] = {"kept", "reverted", "mixed"};
  const char* const data_words[] = {"kept", "lost", "zeroed", "garbage", "mixed"};
  return std::string("names ") + name_words[static_cast<int>(names)] + ", bytes " +
         data_words[static_cast<int>(data)] + ", seed " + std::to_string(seed);
}

ForgetfulFileSystem::ForgetfulFileSystem() {
  const auto root = std::make_shared<Inode>();
  root->is_directory = true;
  names_["/"] = root;
  durable_names_ = names_;
}
ForgetfulFileSystem::~ForgetfulFileSystem() = default;

ForgetfulFileSystem::InodePtr ForgetfulFileSystem::find(const Path& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

void ForgetfulFileSystem::apply(const NameChange& change, Names& names) {
  if (!change.from.empty()) {
    const auto found = names.find(change.from);
    if (found != names.end() && found->second == change.inode) names.erase(found);
  }
  if (!change.to.empty()) names[change.to] = change.inode;
}

void ForgetfulFileSystem::change(const Path& from, const Path& to, const InodePtr& inode) {
  changes_.push_back({from, to, inode});
  apply(changes_.back(), names_);
  ++ticks_;
  for (const Path& path : {from, to})
    if (const InodePtr parent = path.empty() ? nullptr : find(path.parent_path()))
      parent->modified_ns = ticks_;
  changed();
}

Result<FileStatus> ForgetfulFileSystem::status(const Path& path) {
  const InodePtr inode = find(path);
  if (!inode) return FileStatus{};
  return FileStatus{inode->is_directory ? FileType::directory : FileType::regular, inode->byte_count,
                    inode->modified_ns, reinterpret_cast<uint64_t>(inode.get())};
}

Result<std::vector<std::string>> ForgetfulFileSystem::list(const Path& directory) {
  if (!find(directory)) return errno_error(ENOENT, "list", directory);
  std::vector<std::string> found;
  for (const auto& [path, inode] : names_)
    if (path.parent_path() == directory && path != directory) found.push_back(path.filename());
  return found;
}

Result<std::shared_ptr<const MappedFile>> ForgetfulFileSystem::map(const Path& path) {
  const InodePtr inode = find(path);
  if (!inode) return std::shared_ptr<const MappedFile>();
  return std::shared_ptr<const MappedFile>(std::make_shared<CopiedFile>(inode->bytes()));
}

Result<std::unique_ptr<WritableFile>> ForgetfulFileSystem::create(const Path& path) {
  if (!find(path.parent_path())) return errno_error(ENOENT, "create", path);
  if (find(path)) return errno_error(EEXIST, "create", path);
  const auto inode = std::make_shared<Inode>();
  auto file = std::make_unique<ForgetfulFile>(*this, inode);
  change({}, path, inode);
  return std::unique_ptr<WritableFile>(std::move(file));
}

Result<std::unique_ptr<WritableFile>> ForgetfulFileSystem::take_over(const Path& path) {
  const InodePtr inode = find(path);
  if (!inode) return std::unique_ptr<WritableFile>();
  if (inode->is_locked) return Error{ErrorCode::busy, path.string() + " is locked"};
  return std::unique_ptr<WritableFile>(std::make_unique<ForgetfulFile>(*this, inode));
}

Status ForgetfulFileSystem::make_directory(const Path& path) {
  if (find(path)) return {};
  if (!find(path.parent_path())) return errno_error(ENOENT, "create the directory", path);
  const auto inode = std::make_shared<Inode>();
  inode->is_directory = true;
  change({}, path, inode);
  return {};
}

Status ForgetfulFileSystem::rename(const Path& from, const Path& to) {
  const InodePtr inode = find(from);
  if (!inode || !find(to.parent_path())) return errno_error(ENOENT, "rename", from);
  change(from, to, inode);
  return {};
}

Status ForgetfulFileSystem::remove(const Path& path) {
  if (const InodePtr inode = find(path)) change(path, {}, inode);
  return {};
}

Status ForgetfulFileSystem::sync_directory(const Path& path) {
  if (!find(path)) return errno_error(ENOENT, "open", path);
  for (NameChange& change : changes_)
    if ((!change.from.empty() && change.from.parent_path() == path) ||
        (!change.to.empty() && change.to.parent_path() == path))
      change.is_durable = true;
  changed();
  return {};
}

Result<std::unique_ptr<FileLock>> ForgetfulFileSystem::try_lock(const Path& path) {
  if (!find(path)) {
    if (!find(path.parent_path())) return errno_error(ENOENT, "lock", path);
    change({}, path, std::make_shared<Inode>());
  }
  const InodePtr inode = find(path);
  if (inode->is_locked) return Error{ErrorCode::busy, "another process holds " + path.string()};
  return std::unique_ptr<FileLock>(std::make_unique<ForgetfulLock>(inode));
}

std::unique_ptr<ForgetfulFileSystem> ForgetfulFileSystem::after_power_cut(const PowerCut& cut) const {
  std::mt19937_64 random(cut.seed);
  Names left = durable_names_;
  for (const NameChange& change : changes_) {
    const bool is_kept =
        cut.names == PowerCut::Names::kept || (cut.names == PowerCut::Names::mixed && random() % 2 == 0);
    if (change.is_durable || is_kept) apply(change, left);
  }
  auto image = std::make_unique<ForgetfulFileSystem>();
  image->ticks_ = ticks_;
  std::map<const Inode*, InodePtr> copies;
  for (const auto& [path, inode] : left) {  // Parents come before their children.
    if (path != "/" && !image->names_.contains(path.parent_path())) continue;
    InodePtr& copy = copies[inode.get()];
    if (!copy) {
      copy = std::make_shared<Inode>();
      copy->is_directory = inode->is_directory;
      copy->modified_ns = inode->modified_ns;
      copy->synced = inode->remains(cut.data, random);
      copy->set(copy->synced);
    }
    image->names_[path] = copy;
  }
  image->durable_names_ = image->names_;
  return image;
}

std::unique_ptr<ForgetfulFileSystem> ForgetfulFileSystem::after_kill() const {
  auto image = std::make_unique<ForgetfulFileSystem>();
  image->ticks_ = ticks_;
  for (const auto& [path, inode] : names_) {
    const auto copy = std::make_shared<Inode>();
    copy->is_directory = inode->is_directory;
    copy->modified_ns = inode->modified_ns;
    copy->set(text_of(inode->bytes()));
    copy->synced = inode->synced;
    copy->forgotten_blocks = inode->forgotten_blocks;
    image->names_[path] = copy;
  }
  // What was not synced is not synced now: the copies of the inodes take the place of the originals.
  std::map<const Inode*, InodePtr> copies;
  for (const auto& [path, inode] : names_) copies[inode.get()] = image->names_[path];
  const auto copy_of = [&](const InodePtr& inode) {
    InodePtr& copy = copies[inode.get()];
    if (!copy) {
      copy = std::make_shared<Inode>();
      copy->is_directory = inode->is_directory;
      copy->set(text_of(inode->bytes()));
      copy->synced = inode->synced;
    }
    return copy;
  };
  image->durable_names_.clear();
  for (const auto& [path, inode] : durable_names_) image->durable_names_[path] = copy_of(inode);
  for (const NameChange& change : changes_)
    image->changes_.push_back({change.from, change.to, copy_of(change.inode), change.is_durable});
  return image;
}

void ForgetfulFileSystem::fail_sync(const Path& path) {
  const InodePtr inode = find(path);
  if (!inode) return;
  const std::string_view now = text_of(inode->bytes());
  inode->forgotten_blocks.resize((now.size() + kBlockBytes - 1) / kBlockBytes);
  for (size_t block = 0; block < inode->forgotten_blocks.size(); ++block)
    if (inode->block_of(now, block) != inode->block_of(inode->synced, block))
      inode->forgotten_blocks[block] = true;
}

std::vector<Path> ForgetfulFileSystem::files() const {
  std::vector<Path> found;
  for (const auto& [path, inode] : names_)
    if (!inode->is_directory) found.push_back(path);
  return found;
}

std::string ForgetfulFileSystem::contents(const Path& path) const {
  const InodePtr inode = find(path);
  return inode ? std::string(text_of(inode->bytes())) : std::string();
}

void ForgetfulFileSystem::set_contents(const Path& path, std::string_view bytes) {
  InodePtr inode = find(path);
  if (!inode) {
    inode = std::make_shared<Inode>();
    change({}, path, inode);
    changes_.back().is_durable = true;
  }
  inode->set(bytes);
  inode->synced = bytes;
}

}  // namespace lmemo::test
