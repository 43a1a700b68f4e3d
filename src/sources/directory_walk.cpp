// Each directory is a node that one thread fills: read, sort, stat. At the end the nodes are visited in order, which gives
// all paths sorted without sorting them all: a subdirectory sorts as its name with a slash.
#include "sources/directory_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/file_system.h"
#include "sources/glob.h"
#include "sources/ignore_rules.h"
#include "sources/source_file.h"

namespace lmemo {
namespace {

constexpr size_t kEntriesBufferBytes = 64 << 10;
constexpr size_t kNamesShown = 20;
constexpr uint64_t kMaxIgnoreFileBytes = 1 << 20;

struct KernelEntry {  // linux_dirent64
  uint64_t inode;
  int64_t offset;
  unsigned short record_bytes;
  unsigned char type;
  char name[1];
};

struct Node;
struct Child {
  uint32_t name_at = 0;
  uint32_t name_bytes = 0;
  FileStamp stamp;
  std::unique_ptr<Node> directory;  // Null: a file.
};

struct Node {
  std::string path;  // Empty, or ending with a slash.
  std::shared_ptr<const IgnoreRules> rules;
  std::string names;
  std::vector<Child> children;
};

// As the whole paths below would compare.
bool comes_before(const Node& node, const Child& a, const Child& b) {
  const std::string_view a_name(node.names.data() + a.name_at, a.name_bytes);
  const std::string_view b_name(node.names.data() + b.name_at, b.name_bytes);
  const size_t common = std::min(a_name.size(), b_name.size());
  if (const int order = std::memcmp(a_name.data(), b_name.data(), common); order != 0) return order < 0;
  const auto next = [&](const Child& child, std::string_view name) -> int {
    if (common < name.size()) return static_cast<unsigned char>(name[common]);
    return child.directory ? '/' : -1;
  };
  return next(a, a_name) < next(b, b_name);
}

// "docs/" and "docs" leave out the same; a path has no slash at its end.
std::vector<std::string> without_last_slash(std::vector<std::string> patterns) {
  for (std::string& pattern : patterns) {
    if (pattern.starts_with("./")) pattern.erase(0, 2);
    while (pattern.size() > 1 && pattern.ends_with('/')) pattern.pop_back();
  }
  return patterns;
}

Status check_globs(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    if (pattern.empty())
      return Error{ErrorCode::invalid_argument, "an empty glob matches nothing; leave it out, or write **"};
    if (pattern.starts_with('/'))
      return Error{
          ErrorCode::invalid_argument,
          "glob " + pattern +
              ": begins with a slash; expected one over paths relative to the source, such as **/*.py"};
  }
  return {};
}

}  // namespace

class DirectoryWalk {
 public:
  DirectoryWalk(SourceRoot root, const WalkOptions& options, const Watch& watch)
      : root_(std::move(root)),
        options_(options),
        watch_(watch),
        include_(options.include),
        exclude_(without_last_slash(options.exclude)),
        default_exclude_(options.use_default_excludes ? default_excludes() : std::vector<std::string>()) {
    listing_.root_ = root_.directory();
    boundary_ = options.boundary.empty() ? root_.directory() : options.boundary;
    own_path_ = options.own_directory.lexically_relative(root_.directory()).generic_string();
  }

  Result<SourceListing> directory() {
    auto top = std::make_unique<Node>();
    if (options_.use_ignore_files) top->rules = rules_in("", nullptr);
    pending_.push_back(top.get());
    const unsigned threads =
        options_.threads > 0 ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    try {
      for (unsigned i = 1; i < std::min(threads, 16u); ++i) helpers.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // No threads left: this one does it all.
    }
    work();
    helpers.clear();
    if (watch_.stopped()) return Error{ErrorCode::interrupted, "while listing " + root_.directory().string()};
    if (top_error_ != 0) return errno_error(top_error_, "list", root_.directory());
    gather(*top);
    std::sort(listing_.escaping_links_.begin(), listing_.escaping_links_.end());
    std::sort(listing_.unreadable_.begin(), listing_.unreadable_.end());
    return std::move(listing_);
  }

  Result<SourceListing> single_file(const std::string& name, const struct stat& status) {
    // Named by the user: no glob leaves it out.
    Node node;
    node.names = name;
    node.children.push_back({0, static_cast<uint32_t>(name.size()), stamp_of(status), nullptr});
    if (options_.max_bytes_per_file > 0 && node.children[0].stamp.byte_count > options_.max_bytes_per_file) {
      ++listing_.counts_.too_large;
    } else {
      gather(node);
    }
    return std::move(listing_);
  }

 private:
  struct Found {  // Of one directory; added up at its end.
    WalkCounts counts;
    std::vector<std::string> escaping, unreadable;
  };

  void work() {
    std::vector<char> buffer(kEntriesBufferBytes);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !pending_.empty() || busy_ == 0; });
      if (pending_.empty()) return;
      // The newest first: fewer nodes wait at a time.
      Node& node = *pending_.back();
      pending_.pop_back();
      ++busy_;
      lock.unlock();
      Found found;
      if (!watch_.stopped()) read_directory(node, buffer, found);
      lock.lock();
      add(found);
      for (Child& child : node.children)
        if (child.directory) pending_.push_back(child.directory.get());
      --busy_;
      changed_.notify_all();
    }
  }

  void add(Found& found) {
    WalkCounts& all = listing_.counts_;
    const WalkCounts& more = found.counts;
    all.directories += more.directories, all.excluded += more.excluded, all.too_large += more.too_large;
    all.symlinks += more.symlinks, all.special += more.special, all.unreadable += more.unreadable;
    for (auto [from, to] : {std::pair(&found.escaping, &listing_.escaping_links_),
                            std::pair(&found.unreadable, &listing_.unreadable_)})
      for (std::string& name : *from)
        if (to->size() < kNamesShown) to->push_back(std::move(name));
  }

  void read_directory(Node& node, std::vector<char>& buffer, Found& found) {
    const int descriptor = root_.open_beneath(node.path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return cannot_read(node, errno, found);
    ++found.counts.directories;
    std::string path;
    for (;;) {
      const long count = ::syscall(SYS_getdents64, descriptor, buffer.data(), buffer.size());
      if (count < 0) cannot_read(node, errno, found);
      if (count <= 0) break;
      for (long at = 0; at < count;) {
        // The kernel aligns entries, and so does the buffer.
        const auto* entry = reinterpret_cast<const KernelEntry*>(buffer.data() + at);
        at += entry->record_bytes;
        look_at(node, descriptor, entry->name, entry->type, path, found);
      }
    }
    ::close(descriptor);
    std::sort(node.children.begin(), node.children.end(),
              [&](const Child& a, const Child& b) { return comes_before(node, a, b); });
  }

  void cannot_read(const Node& node, int error, Found& found) {
    if (node.path.empty()) top_error_ = error;
    ++found.counts.unreadable;
    found.unreadable.push_back(node.path);
  }

  void look_at(Node& node, int descriptor, const char* name_text, unsigned char type, std::string& path,
               Found& found) {
    const std::string_view name(name_text);
    if (name == "." || name == "..") return;
    path.assign(node.path).append(name);
    struct stat status;
    bool has_status = false;
    if (type == DT_UNKNOWN) {
      if (::fstatat(descriptor, name_text, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      has_status = true;
      type = S_ISREG(status.st_mode)   ? DT_REG
             : S_ISDIR(status.st_mode) ? DT_DIR
             : S_ISLNK(status.st_mode) ? DT_LNK
                                       : DT_FIFO;
    }
    const bool is_directory = type == DT_DIR;
    if ((is_directory && path == own_path_) || exclude_.matches(path) || default_exclude_.matches(path) ||
        (node.rules && node.rules->ignores(path, is_directory))) {
      ++found.counts.excluded;
      return;
    }
    if (is_directory) {
      Child& child = add_child(node, name);
      child.directory = std::make_unique<Node>();
      child.directory->path = path + "/";
      if (options_.use_ignore_files) child.directory->rules = rules_in(child.directory->path, node.rules);
      return;
    }
    if (!include_.empty() && !include_.matches(path)) {
      ++found.counts.excluded;
      return;
    }
    if (type == DT_LNK) {
      ++found.counts.symlinks;
      if (leaves_boundary(path)) found.escaping.push_back(path);
      return;
    }
    if (type != DT_REG) {
      ++found.counts.special;
      return;
    }
    if (!has_status && ::fstatat(descriptor, name_text, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      ++found.counts.unreadable;
      return;
    }
    const FileStamp stamp = stamp_of(status);
    if (options_.max_bytes_per_file > 0 && stamp.byte_count > options_.max_bytes_per_file) {
      ++found.counts.too_large;
      return;
    }
    add_child(node, name).stamp = stamp;
  }

  static Child& add_child(Node& node, std::string_view name) {
    Child& child = node.children.emplace_back();
    child.name_at = static_cast<uint32_t>(node.names.size());
    child.name_bytes = static_cast<uint32_t>(name.size());
    node.names += name;
    return child;
  }

  bool leaves_boundary(const std::string& path) const {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::weakly_canonical(root_.directory() / path, error);
    if (error) return false;  // A loop, or a link to nothing: it leads nowhere.
    const auto [end, ignored] =
        std::mismatch(boundary_.begin(), boundary_.end(), target.begin(), target.end());
    return end != boundary_.end();
  }

  std::shared_ptr<const IgnoreRules> rules_in(const std::string& directory,
                                              std::shared_ptr<const IgnoreRules> above) const {
    const int descriptor = root_.open_beneath(directory + ".gitignore", O_RDONLY | O_NONBLOCK);
    if (descriptor < 0) return above;
    std::string text;
    struct stat status;
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
      text.resize(std::min(static_cast<uint64_t>(status.st_size), kMaxIgnoreFileBytes));
      const ssize_t count = ::read(descriptor, text.data(), text.size());
      text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    }
    ::close(descriptor);
    return IgnoreRules::read(text, directory, std::move(above));
  }

  void gather(const Node& node) {
    for (const Child& child : node.children) {
      if (child.directory) {
        gather(*child.directory);
      } else if (options_.max_files > 0 && listing_.files_.size() >= options_.max_files) {
        ++listing_.counts_.over_limit;
      } else {
        SourceListing::File& file = listing_.files_.emplace_back();
        file.path_at = listing_.paths_.size();
        file.path_bytes = static_cast<uint32_t>(node.path.size() + child.name_bytes);
        file.stamp = child.stamp;
        listing_.paths_.append(node.path).append(node.names, child.name_at, child.name_bytes);
        listing_.total_bytes_ += child.stamp.byte_count;
      }
    }
  }

  const SourceRoot root_;
  const WalkOptions& options_;
  const Watch& watch_;
  const GlobSet include_, exclude_, default_exclude_;
  std::filesystem::path boundary_;
  std::string own_path_;  // Relative to the root, as the paths of directories are.
  std::atomic<int> top_error_{0};

  std::mutex mutex_;  // Guards everything below, while threads work.
  std::condition_variable changed_;
  std::vector<Node*> pending_;
  unsigned busy_ = 0;
  SourceListing listing_;
};

Result<SourceListing> walk_sources(const std::filesystem::path& root, const WalkOptions& options,
                                   const Watch& watch) {
  LMEMO_TRY(check_globs(options.include));
  LMEMO_TRY(check_globs(options.exclude));
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::canonical(root, error);
  if (error) return errno_error(error.value(), "read", root);
  struct stat status;
  if (::stat(resolved.c_str(), &status) != 0) return errno_error(errno, "read", root);
  if (S_ISDIR(status.st_mode)) {
    LMEMO_ASSIGN(SourceRoot directory, SourceRoot::open(resolved));
    return DirectoryWalk(std::move(directory), options, watch).directory();
  }
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::invalid_argument,
                 root.string() + ": neither a directory nor a file; expected a source to read"};
  LMEMO_ASSIGN(SourceRoot directory, SourceRoot::open(resolved.parent_path()));
  return DirectoryWalk(std::move(directory), options, watch)
      .single_file(resolved.filename().string(), status);
}

}  // namespace lmemo
