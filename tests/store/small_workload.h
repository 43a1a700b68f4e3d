#pragma once

// A little of everything that a store does, told to KeyHistories as it happens.

#include "key_histories.h"
#include "steady_clock.h"
#include "store/disk_store.h"

namespace lmemo::test {

inline const Path kWorkloadRoot = "/home/store";

inline StoreOptions workload_options() {
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  options.publish_seconds = 3600;
  options.refresh_seconds = 0;
  return options;
}

inline Key workload_key(const std::string& name) {
  return *Key::of(name.front() == 'o' ? "old" : "tokens", {{"name", name}, {"model", "small@1"}});
}

class SmallWorkload {
 public:
  SmallWorkload(FileSystem& files, SteadyClock& clock, KeyHistories& histories)
      : environment_{&files, &clock}, clock_(clock), histories_(histories) {}

  // Goes on after errors, as a training run does.
  void run() {
    open();
    put("a"), put("b"), put("o1"), put("o2");
    flush();
    put("a"), erase("b"), put("c");
    flush();
    put("d");
    open();  // Closing publishes.
    put("b"), erase("c"), put("o1");
    flush();
    maintain([](Store& store) { return store.compact().ok(); });
    put("e"), erase("e"), put("c");
    flush();
    clock_.advance_seconds(1000);
    put("a"), put("d");
    flush();
    open();
    may_lose([](Store& store) { return store.prune(500, "old").ok(); });
    put("o1"), put("f");
    flush();
    maintain([](Store& store) { return store.compact().ok(); });
    maintain([](Store& store) { return store.repair().ok(); });
    open();
    put("g");
    may_lose([](Store& store) { return store.evict(1000).ok(); });
    put("a"), put("b");
    flush();
    erase("a");
    flush();
    maintain([](Store& store) { return store.compact().ok(); });
    store_.reset();
  }

  // Compares what an open store shows now with what was done to it. Returned instead of checked, so that callers can say
  // where they were.
  std::optional<std::string> complaint_about(Store& store, Survived survived) const {
    for (const std::string& name : histories_.names())
      if (auto complaint = histories_.complaint(name, store.find(workload_key(name)), survived))
        return complaint;
    return std::nullopt;
  }

  // Every lie that was told meanwhile.
  const std::vector<std::string>& lies() const { return lies_; }

 private:
  void open() {
    store_.reset();
    Result<std::unique_ptr<Store>> store = open_disk_store(kWorkloadRoot, workload_options(), environment_);
    if (store.ok()) store_ = std::move(*store);
  }

  void put(const std::string& name) {
    std::string value = name + " " + std::to_string(++puts_) + " ";
    value.resize(40 + puts_ % 7 * 100, 'x');
    histories_.begin(name, value);
    if (store_ && store_->put(workload_key(name), bytes_of(value)).ok()) histories_.done(name);
    look(name);
  }

  void erase(const std::string& name) {
    histories_.begin(name, std::nullopt);
    if (store_)
      if (const Result<bool> erased = store_->erase(workload_key(name)); erased.ok() && *erased)
        histories_.done(name);
    look(name);
  }

  void flush() {
    if (store_ && store_->flush().ok()) histories_.flushed();
    for (const std::string& name : histories_.names()) look(name);
  }

  template <typename Work>
  void maintain(Work work) {
    // It flushes first, and tells if that failed.
    if (store_ && work(*store_)) histories_.flushed();
    for (const std::string& name : histories_.names()) look(name);
  }

  template <typename Work>
  void may_lose(Work work) {
    histories_.may_lose_all();
    maintain(work);
  }

  void look(const std::string& name) {
    if (!store_) return;
    if (!histories_.was_ever(name, store_->find(workload_key(name))))
      lies_.push_back(name + " shows what it never was");
  }

  StoreEnvironment environment_;
  SteadyClock& clock_;
  KeyHistories& histories_;
  std::unique_ptr<Store> store_;
  int puts_ = 0;
  std::vector<std::string> lies_;
};

}  // namespace lmemo::test
