#include "peers.h"

#include <lmdb.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "bench_tools.h"

namespace lmemo::bench {

void Peer::remove() {
  close();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

// ------------------------------------------------------------------------------------------------------- lmemo

StoreOptions bench_options(CheckPolicy check) {
  StoreOptions options;
  options.max_bytes = uint64_t{100} << 30;  // Large, but there: the limit is looked after as in real life.
  options.check = check;
  options.on_notice = [](const Notice& notice) {
    std::fprintf(stderr, "bench: notice: %s\n", notice.message.c_str());
  };
  return options;
}

void LmemoPeer::open() { store_ = must(open_store(directory(), bench_options(check_)), "open the store"); }

void LmemoPeer::put(const Workload& workload, size_t first, size_t end) {
  std::vector<Item> items;
  for (size_t i = first; i < end; ++i) {
    if (one_by_one_) {
      must(store_->put(workload.key(i), workload.value(i)), "put");
    } else {
      items.push_back({&workload.key(i), workload.value(i)});
    }
    if ((i + 1 - first) % kEntriesPerFlush != 0 && i + 1 != end) continue;
    if (!items.empty()) must(store_->put_many(items), "put_many");
    items.clear();
    must(store_->flush(), "flush");
  }
}

void LmemoPeer::fill(const Workload& workload) {
  create();
  std::vector<Item> items;
  for (size_t i = 0; i < workload.count(); ++i) {
    items.push_back({&workload.key(i), workload.value(i)});
    if (items.size() < kEntriesPerFlush && i + 1 < workload.count()) continue;
    must(store_->put_many(items), "put_many");
    items.clear();
  }
  must(store_->flush(), "flush");
  close();
}

uint64_t LmemoPeer::find_all(std::span<const Digest> digests) {
  uint64_t bytes = 0;
  for (const Digest& digest : digests)
    if (const std::optional<Hit> hit = store_->find(digest)) bytes += hit->value().size();
  return bytes;
}

// -------------------------------------------------------------------------------------------------------- LMDB

namespace {

void check(int code, const char* doing) {
  if (code != 0) fail(std::string("LMDB, ") + doing + ": " + mdb_strerror(code));
}

MDB_val value_of(Bytes bytes) { return {bytes.size(), const_cast<std::byte*>(bytes.data())}; }

}  // namespace

struct LmdbPeer::Handles {
  MDB_env* environment = nullptr;
  MDB_dbi database = 0;
  MDB_txn* reading = nullptr;
};

LmdbPeer::LmdbPeer(std::filesystem::path directory, Writes writes)
    : Peer(std::move(directory)), writes_(writes) {}
LmdbPeer::~LmdbPeer() { close(); }

void LmdbPeer::start(bool without_sync) {
  std::filesystem::create_directories(directory());
  handles_ = std::make_unique<Handles>();
  check(mdb_env_create(&handles_->environment), "create");
  check(mdb_env_set_mapsize(handles_->environment, size_t{64} << 30), "set the map size");
  const unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (without_sync ? MDB_NOSYNC : 0) |
                         (writes_ == Writes::by_map ? MDB_WRITEMAP : 0);
  check(mdb_env_open(handles_->environment, directory().c_str(), flags, 0644), "open");
  MDB_txn* transaction = nullptr;
  check(mdb_txn_begin(handles_->environment, nullptr, 0, &transaction), "begin");
  check(mdb_dbi_open(transaction, nullptr, 0, &handles_->database), "open the table");
  check(mdb_txn_commit(transaction), "commit");
}

void LmdbPeer::put(const Workload& workload, size_t first, size_t end) {
  MDB_txn* transaction = nullptr;
  for (size_t i = first; i < end; ++i) {
    if (transaction == nullptr)
      check(mdb_txn_begin(handles_->environment, nullptr, 0, &transaction), "begin");
    MDB_val key = value_of(workload.key(i).digest().bytes), value = value_of(workload.value(i));
    check(mdb_put(transaction, handles_->database, &key, &value, 0), "put");
    if ((i + 1 - first) % kEntriesPerFlush != 0 && i + 1 != end) continue;
    check(mdb_txn_commit(transaction), "commit");
    transaction = nullptr;
  }
}

void LmdbPeer::fill(const Workload& workload) {
  start(true);
  put(workload, 0, workload.count());
  check(mdb_env_sync(handles_->environment, 1), "sync");
  close();
}

void LmdbPeer::open() {
  start(false);
  check(mdb_txn_begin(handles_->environment, nullptr, MDB_RDONLY, &handles_->reading), "begin");
}

uint64_t LmdbPeer::find_all(std::span<const Digest> digests) {
  uint64_t bytes = 0;
  for (const Digest& digest : digests) {
    if (reads_ == Reads::renewed) {
      mdb_txn_reset(handles_->reading);
      check(mdb_txn_renew(handles_->reading), "renew");
    } else if (reads_ == Reads::begun) {
      mdb_txn_abort(handles_->reading);
      check(mdb_txn_begin(handles_->environment, nullptr, MDB_RDONLY, &handles_->reading), "begin");
    }
    MDB_val key = value_of(digest.bytes), value;
    if (mdb_get(handles_->reading, handles_->database, &key, &value) == 0) bytes += value.mv_size;
  }
  return bytes;
}

void LmdbPeer::close() {
  if (!handles_) return;
  if (handles_->reading != nullptr) mdb_txn_abort(handles_->reading);
  mdb_env_close(handles_->environment);
  handles_.reset();
}

// ------------------------------------------------------------------------------------------- one file per entry

namespace {

// DIRECTORY/ab/abcdef…
std::string path_of(const std::string& directory, const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string path = directory;
  path.reserve(directory.size() + 70);
  const auto append = [&](std::byte byte) {
    path += kHex[std::to_integer<int>(byte) >> 4];
    path += kHex[std::to_integer<int>(byte) & 15];
  };
  path += '/';
  append(digest.bytes[0]);
  path += '/';
  for (const std::byte byte : digest.bytes) append(byte);
  return path;
}

}  // namespace

void FilesPeer::create() {
  for (int i = 0; i < 256; ++i) {
    char name[3];
    std::snprintf(name, sizeof name, "%02x", i);
    std::filesystem::create_directories(directory() / name);
  }
}

void FilesPeer::write_files(const Workload& workload, size_t first, size_t end, bool synced) {
  for (size_t i = first; i < end; ++i) {
    const std::string path = path_of(directory().string(), workload.key(i).digest());
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const Bytes value = workload.value(i);
    if (file < 0 || ::write(file, value.data(), value.size()) != static_cast<ssize_t>(value.size()) ||
        (synced && ::fdatasync(file) != 0))
      fail("write " + path + ": " + std::strerror(errno));
    ::close(file);
  }
  if (!synced) return;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || ::fsync(descriptor) != 0) fail("sync " + entry.path().string());
    ::close(descriptor);
  }
}

void FilesPeer::put(const Workload& workload, size_t first, size_t end) {
  for (size_t from = first; from < end; from += kEntriesPerFlush)
    write_files(workload, from, std::min(end, from + kEntriesPerFlush), true);
}

void FilesPeer::fill(const Workload& workload) {
  create();
  write_files(workload, 0, workload.count(), false);
}

uint64_t FilesPeer::find_all(std::span<const Digest> digests) {
  std::vector<std::byte> buffer(1 << 16);
  const std::string root = directory().string();
  uint64_t bytes = 0;
  for (const Digest& digest : digests) {
    const int file = ::open(path_of(root, digest).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status;
    if (::fstat(file, &status) == 0) {
      if (buffer.size() < static_cast<size_t>(status.st_size))
        buffer.resize(static_cast<size_t>(status.st_size));
      const ssize_t got = ::read(file, buffer.data(), static_cast<size_t>(status.st_size));
      if (got > 0) bytes += static_cast<uint64_t>(got);
    }
    ::close(file);
  }
  return bytes;
}

}  // namespace lmemo::bench
