// An LRU table that many threads use at once, each hit under the lock of one shard only.
//
//   ShardedLru<Node, std::mutex, 16> table(256, 0);
//   table.find(hash, tick, is_equal, [&](Node& node) { value = node.value; });   // Now the most recent.
//   delete_all(table.put(node, tick, is_equal));                                 // What had to go, if anything.
//
// Nodes are made by the caller and come back to the caller, who deletes them when no lock is held: a node may own Python
// objects, whose end can run any code. For the same reason `is_equal` must be plain comparison, and keys that cannot
// promise that are compared outside, by find_candidates() and a put() that is refused if the shard changed meanwhile.
//
// The order of use is global although the shards are not: every node carries the tick of its last use, and what goes is the
// oldest of the shards' oldest. A hit only writes its tick. Each shard has a heap by the ticks that its nodes had when they
// were looked at last, and whoever needs the oldest brings those of the first up to date until one is. A list in the
// order of use was tried: every hit wrote to three nodes, whose cache lines other threads then had to fetch. Ticks come
// from the caller and must not decrease within a thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace lmemo {

struct LruLinks {
  uint64_t hash = 0;
  uint64_t tick = 0;  // Of its last use.
  uint64_t byte_count = 0;
  LruLinks* next = nullptr;  // In the bucket, or in a list of removed nodes.
  uint64_t known_tick = 0;   // By which it stands in the heap; tick may be later.
  size_t place = 0;          // In the heap.
};

// Where one thread, or a lock around everything (such as Python's), already does the work.
struct NoMutex {
  void lock() {}
  void unlock() {}
};

// `Node` derives from LruLinks.
template <typename Node, typename Mutex, size_t kShards>
class ShardedLru {
 public:
  // max_bytes 0: no limit.
  ShardedLru(uint64_t max_entries, uint64_t max_bytes) : max_entries_(max_entries), max_bytes_(max_bytes) {}
  ShardedLru(const ShardedLru&) = delete;
  ShardedLru& operator=(const ShardedLru&) = delete;
  // Requires: empty, or that somebody else deletes the nodes: call take_all() first.
  ~ShardedLru() = default;

  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  uint64_t byte_count() const { return byte_count_.load(std::memory_order_relaxed); }
  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  uint64_t max_entries() const { return max_entries_; }
  uint64_t max_bytes() const { return max_bytes_; }

  // Calls use(node) under the lock and makes the node the most recent. False on a miss.
  template <typename IsEqual, typename Use>
  bool find(uint64_t hash, uint64_t tick, IsEqual&& is_equal, Use&& use) {
    Shard& shard = shard_of(hash);
    const std::lock_guard lock(shard.mutex);
    Node* const node = shard.find(hash, is_equal);
    if (node == nullptr) return false;
    if (tick > node->tick) node->tick = tick;
    use(*node);
    return true;
  }

  // Calls see(node) for every node of that hash. Returns the version to give to put().
  template <typename See>
  uint64_t find_candidates(uint64_t hash, See&& see) {
    Shard& shard = shard_of(hash);
    const std::lock_guard lock(shard.mutex);
    for (LruLinks* links = shard.bucket(hash); links != nullptr; links = links->next)
      if (links->hash == hash) see(static_cast<Node&>(*links));
    return shard.version;
  }

  struct Put {
    // The shard changed since `version`: look again. The node is still the caller's.
    bool is_refused = false;
    Node* removed = nullptr;  // A list, linked by `next`, for the caller to delete.
  };

  // Takes the node; its hash and byte_count are set. An equal node is replaced. A node that alone is over the limit of
  // bytes is not kept and comes back among the removed, with the node it would have replaced.
  template <typename IsEqual>
  Put put(Node* node, uint64_t tick, IsEqual&& is_equal, std::optional<uint64_t> version = std::nullopt) {
    Put result;
    const bool is_too_large = max_bytes_ > 0 && node->byte_count > max_bytes_;
    {
      Shard& shard = shard_of(node->hash);
      const std::lock_guard lock(shard.mutex);
      if (version && *version != shard.version) {
        result.is_refused = true;
        return result;
      }
      if (Node* const old = shard.find(node->hash, is_equal)) {
        take_out(shard, *old);
        push(result.removed, *old);
      }
      if (is_too_large) {
        push(result.removed, *node);
        return result;
      }
      shard.insert(*node, tick);
      entries_.fetch_add(1, std::memory_order_relaxed);
      byte_count_.fetch_add(node->byte_count, std::memory_order_relaxed);
    }
    if (is_over_limit()) make_room(result.removed);
    return result;
  }

  // Everything, as a list for the caller to delete.
  Node* take_all() {
    Node* removed = nullptr;
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      while (!shard.heap.empty()) {
        Node& node = static_cast<Node&>(*shard.heap.back());
        take_out(shard, node);
        push(removed, node);
      }
    }
    return removed;
  }

  template <typename See>
  void for_each(See&& see) {
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      for (LruLinks* links : shard.heap) see(static_cast<Node&>(*links));
    }
  }

 private:
  struct alignas(64) Shard {
    Mutex mutex;  // Guards everything below.
    std::vector<LruLinks*> buckets = std::vector<LruLinks*>(16);
    // Nobody's known tick is before that of its parent, who stands at (place - 1) / 2.
    std::vector<LruLinks*> heap;
    uint64_t version = 0;  // Of what is in it, not of the order.

    // The high bits choose the shard, the low ones the bucket.
    LruLinks*& bucket(uint64_t hash) { return buckets[hash & (buckets.size() - 1)]; }

    template <typename IsEqual>
    Node* find(uint64_t hash, IsEqual& is_equal) {
      for (LruLinks* links = bucket(hash); links != nullptr; links = links->next)
        if (links->hash == hash && is_equal(static_cast<Node&>(*links))) return static_cast<Node*>(links);
      return nullptr;
    }

    // Null if there is none.
    Node* oldest() {
      if (heap.empty()) return nullptr;
      while (heap.front()->known_tick != heap.front()->tick) {
        heap.front()->known_tick = heap.front()->tick;
        move_back(*heap.front(), 0);
      }
      return static_cast<Node*>(heap.front());
    }

    void insert(LruLinks& node, uint64_t tick) {
      if (heap.size() >= buckets.size()) grow();
      heap.push_back(&node);
      node.tick = node.known_tick = tick;
      node.next = bucket(node.hash);
      bucket(node.hash) = &node;
      move_to_front(node, heap.size() - 1);
      ++version;
    }
    void remove(LruLinks& node) {
      LruLinks** link = &bucket(node.hash);
      while (*link != &node) link = &(*link)->next;
      *link = node.next;
      LruLinks& last = *heap.back();
      heap.pop_back();
      if (&last != &node) {
        move_back(last, node.place);
        move_to_front(last, last.place);
      }
      ++version;
    }

   private:
    void put_at(LruLinks& node, size_t place) {
      heap[place] = &node;
      node.place = place;
    }
    // From `place` on, until its parent is no later; the one that stands there is overwritten.
    void move_to_front(LruLinks& node, size_t place) {
      for (; place > 0 && node.known_tick < heap[(place - 1) / 2]->known_tick; place = (place - 1) / 2)
        put_at(*heap[(place - 1) / 2], place);
      put_at(node, place);
    }
    // The same, until its children are no earlier.
    void move_back(LruLinks& node, size_t place) {
      for (size_t child; (child = 2 * place + 1) < heap.size(); place = child) {
        if (child + 1 < heap.size() && heap[child + 1]->known_tick < heap[child]->known_tick) ++child;
        if (heap[child]->known_tick >= node.known_tick) break;
        put_at(*heap[child], place);
      }
      put_at(node, place);
    }
    void grow() {
      std::vector<LruLinks*> old(buckets.size() * 2);
      old.swap(buckets);
      for (LruLinks* links : old)
        while (links != nullptr) {
          LruLinks* const next = links->next;
          links->next = bucket(links->hash);
          bucket(links->hash) = links;
          links = next;
        }
    }
  };

  static_assert((kShards & (kShards - 1)) == 0, "the shard is chosen by bits of the hash");

  Shard& shard_of(uint64_t hash) { return shards_[(hash >> 48) & (kShards - 1)]; }
  static void push(Node*& list, Node& node) {
    node.next = list;
    list = &node;
  }
  // Requires: the shard is locked.
  void take_out(Shard& shard, Node& node) {
    shard.remove(node);
    entries_.fetch_sub(1, std::memory_order_relaxed);
    byte_count_.fetch_sub(node.byte_count, std::memory_order_relaxed);
  }
  bool is_over_limit() const {
    return entries() > max_entries_ || (max_bytes_ > 0 && byte_count() > max_bytes_);
  }

  // One thread at a time, so that two of them cannot both remove for the same excess.
  void make_room(Node*& removed) {
    const std::lock_guard room_lock(room_mutex_);
    while (is_over_limit()) {
      Shard* chosen = nullptr;
      uint64_t oldest_tick = 0;
      for (Shard& shard : shards_) {
        const std::lock_guard lock(shard.mutex);
        const Node* const oldest = shard.oldest();
        if (oldest == nullptr || (chosen != nullptr && oldest->tick >= oldest_tick)) continue;
        chosen = &shard;
        oldest_tick = oldest->tick;
      }
      if (chosen == nullptr) return;
      const std::lock_guard lock(chosen->mutex);
      Node* const node = chosen->oldest();
      if (node == nullptr) continue;
      take_out(*chosen, *node);
      push(removed, *node);
      evictions_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  const uint64_t max_entries_;
  const uint64_t max_bytes_;
  std::atomic<uint64_t> entries_ = 0;
  std::atomic<uint64_t> byte_count_ = 0;
  std::atomic<uint64_t> evictions_ = 0;
  Mutex room_mutex_;  // Taken before that of a shard.
  Shard shards_[kShards];
};

// For nodes made by new.
template <typename Node>
void delete_all(Node* removed) {
  while (removed != nullptr) {
    Node* const next = static_cast<Node*>(removed->next);
    delete removed;
    removed = next;
  }
}

}  // namespace lmemo
