// The one LRU of lmemo: charged in bytes, least recently used first out. Not safe for threads; its owner guards it.
//
//   ByteLru<Digest, Value> lru(max_bytes);
//   lru.put(digest, value, value.size());
//   if (Value* value = lru.find(digest)) …      // Now the most recent.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace lmemo {

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class ByteLru {
 public:
  struct Item {
    Key key;
    Value value;
    uint64_t byte_count;
  };
  using OnEvict = std::function<void(Item&)>;

  // max_bytes 0: no limit.
  explicit ByteLru(uint64_t max_bytes = 0, OnEvict on_evict = {})
      : max_bytes_(max_bytes), on_evict_(std::move(on_evict)) {}

  Value* find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found->second);
    return &found->second->value;
  }
  // Does not count as a use.
  const Value* peek(const Key& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : &found->second->value;
  }

  // False if it alone is over the limit: it is then not kept, and nothing else goes for it.
  bool put(const Key& key, Value value, uint64_t byte_count) {
    if (max_bytes_ > 0 && byte_count > max_bytes_) return false;
    erase(key);
    items_.push_front({key, std::move(value), byte_count});
    places_[key] = items_.begin();
    byte_count_ += byte_count;
    if (max_bytes_ > 0) shrink_to(max_bytes_);
    return true;
  }

  bool erase(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    byte_count_ -= found->second->byte_count;
    items_.erase(found->second);
    places_.erase(found);
    return true;
  }

  void shrink_to(uint64_t target_bytes) {
    while (byte_count_ > target_bytes && !items_.empty()) {
      Item& oldest = items_.back();
      if (on_evict_) on_evict_(oldest);
      erase(Key(oldest.key));
    }
  }

  void clear() {
    items_.clear();
    places_.clear();
    byte_count_ = 0;
  }

  size_t size() const { return items_.size(); }
  uint64_t byte_count() const { return byte_count_; }
  uint64_t max_bytes() const { return max_bytes_; }
  // Most recent first.
  const std::list<Item>& items() const { return items_; }

 private:
  uint64_t max_bytes_;
  OnEvict on_evict_;
  uint64_t byte_count_ = 0;
  std::list<Item> items_;
  std::unordered_map<Key, typename std::list<Item>::iterator, Hash> places_;
};

}  // namespace lmemo
