#pragma once

// A file system in memory that knows what a power cut may take: bytes that were not synced, names whose directory was
// not synced. It also does what disks do to files: cut them, flip their bits.
//
//   ForgetfulFileSystem files;
//   ... work on it ...
//   auto image = files.after_power_cut(PowerCut::all_lost());   // a disk as it may look afterwards
//   auto image = files.after_kill();                            // everything that was written, no lock held
//
// Names are independent of one another unless synced: a later change may survive where an earlier one does not, as
// POSIX allows. A rename happens as a whole or not at all, as every journal has it.

#include <functional>
#include <map>
#include <random>

#include "base/file_system.h"

namespace lmemo::test {

// What becomes of that which was not synced.
struct PowerCut {
  enum class Names { kept, reverted, mixed };
  enum class Data { kept, lost, zeroed, garbage, mixed };  // zeroed: the length arrived, the bytes did not.
  Names names = Names::kept;
  Data data = Data::kept;
  uint64_t seed = 0;

  // Every pure combination, and so many random mixtures.
  static std::vector<PowerCut> samples(uint64_t mixtures, uint64_t seed);
  std::string describe() const;
};

class ForgetfulFileSystem : public FileSystem {
 public:
  ForgetfulFileSystem();
  ~ForgetfulFileSystem() override;

  Result<FileStatus> status(const Path& path) override;
  Result<std::vector<std::string>> list(const Path& directory) override;
  Result<std::shared_ptr<const MappedFile>> map(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> take_over(const Path& path) override;
  Status make_directory(const Path& path) override;
  Status rename(const Path& from, const Path& to) override;
  Status remove(const Path& path) override;
  Status sync_directory(const Path& path) override;
  Result<std::unique_ptr<FileLock>> try_lock(const Path& path) override;

  std::unique_ptr<ForgetfulFileSystem> after_power_cut(const PowerCut& cut) const;
  std::unique_ptr<ForgetfulFileSystem> after_kill() const;

  // A sync of this file failed: the kernel takes its pages for clean, and no later sync writes them.
  void fail_sync(const Path& path);

  std::vector<Path> files() const;
  std::string contents(const Path& path) const;
  // Behind everybody's back; durable at once.
  void set_contents(const Path& path, std::string_view bytes);

  // Called after each call that changed something.
  std::function<void()> on_change;

 private:
  friend class ForgetfulFile;
  friend class ForgetfulLock;
  struct Inode;
  using InodePtr = std::shared_ptr<Inode>;
  struct NameChange {  // A create has no `from`, a removal no `to`.
    Path from, to;
    InodePtr inode;
    bool is_durable = false;
  };
  using Names = std::map<Path, InodePtr>;

  static void apply(const NameChange& change, Names& names);
  void change(const Path& from, const Path& to, const InodePtr& inode);
  InodePtr find(const Path& path) const;
  void changed() const {
    if (on_change) on_change();
  }

  Names durable_names_;  // When this object was made.
  std::vector<NameChange> changes_;
  Names names_;
  int64_t ticks_ = 0;
};

}  // namespace lmemo::test
