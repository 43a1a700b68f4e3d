// lmemo and what people would use instead, behind one face, so that each is asked exactly the same.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lmemo/store.h"
#include "workload.h"

namespace lmemo::bench {

inline constexpr size_t kEntriesPerFlush = 1000;

class Peer {
 public:
  explicit Peer(std::filesystem::path directory) : directory_(std::move(directory)) {}
  virtual ~Peer() = default;
  const std::filesystem::path& directory() const { return directory_; }

  virtual std::string name() const = 0;
  // An empty place, ready for puts.
  virtual void create() = 0;
  // Makes these entries durable, kEntriesPerFlush at a time.
  virtual void put(const Workload& workload, size_t first, size_t end) = 0;
  // As fast as it goes; only what is read afterwards counts.
  virtual void fill(const Workload& workload) { put(workload, 0, workload.count()); }
  // Opens what was filled, for reading.
  virtual void open() = 0;
  // Looks every digest up to a pointer to the value, and adds up the bytes of those found.
  virtual uint64_t find_all(std::span<const Digest> digests) = 0;
  virtual void close() = 0;
  void remove();

 private:
  const std::filesystem::path directory_;
};

StoreOptions bench_options(CheckPolicy check);

class LmemoPeer : public Peer {
 public:
  // one_by_one: put() per entry instead of put_many() per flush.
  LmemoPeer(std::filesystem::path directory, CheckPolicy check, bool one_by_one = false)
      : Peer(std::move(directory)), check_(check), one_by_one_(one_by_one) {}
  std::string name() const override { return "lmemo"; }
  void create() override { open(); }
  void put(const Workload& workload, size_t first, size_t end) override;
  void fill(const Workload& workload) override;
  void open() override;
  uint64_t find_all(std::span<const Digest> digests) override;
  void close() override { store_.reset(); }
  Store& store() { return *store_; }

 private:
  const CheckPolicy check_;
  const bool one_by_one_;
  std::unique_ptr<Store> store_;
};

// LMDB's C library in its best reasonable shape: a map larger than the data (never grown), MDB_NOTLS, no read-ahead. One
// read transaction for all finds is its fastest, but sees nothing new, and while it lives the file only grows: a program that
// reads and writes has to renew it again and again, or, written the simplest way, begins one for every find.
class LmdbPeer : public Peer {
 public:
  enum class Writes { by_pwrite, by_map };  // by_map: MDB_WRITEMAP.
  LmdbPeer(std::filesystem::path directory, Writes writes = Writes::by_pwrite);
  ~LmdbPeer() override;
  std::string name() const override { return writes_ == Writes::by_map ? "LMDB writemap" : "LMDB"; }
  void create() override { start(false); }
  void put(const Workload& workload, size_t first, size_t end) override;
  void fill(const Workload& workload) override;
  void open() override;
  uint64_t find_all(std::span<const Digest> digests) override;
  void close() override;
  enum class Reads {
    of_a_snapshot,
    renewed,
    begun
  };  // What is done before every find: nothing, renew, abort and begin.
  void set_reads(Reads reads) { reads_ = reads; }

 private:
  struct Handles;
  void start(bool without_sync);
  const Writes writes_;
  Reads reads_ = Reads::of_a_snapshot;
  std::unique_ptr<Handles> handles_;
};

// One file per entry in 256 directories. A find is open, fstat, read, close; a durable put is create, write, fdatasync,
// close, and the directories are synced once per kEntriesPerFlush (cheaper than the rename a careful program adds).
class FilesPeer : public Peer {
 public:
  using Peer::Peer;
  std::string name() const override { return "one file per entry"; }
  void create() override;
  void put(const Workload& workload, size_t first, size_t end) override;
  void fill(const Workload& workload) override;
  void open() override {}
  uint64_t find_all(std::span<const Digest> digests) override;
  void close() override {}

 private:
  void write_files(const Workload& workload, size_t first, size_t end, bool synced);
};

}  // namespace lmemo::bench
