// Hash tables of numbers in one block of memory: for vocabularies and merges, which are filled once and asked often.
//
// Hashes depend on a number drawn at start, so that no file can be made to collide.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

// Another one in every process.
uint64_t hash_seed();

inline uint64_t mixed(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_of(uint64_t number, uint64_t seed) {
  return mixed(number ^ seed, (seed << 1 | 1) ^ 0x9E3779B97F4A7C15u);
}

inline uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t hash = seed ^ text.size();
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mixed(hash ^ word, 0xA0761D6478BD642Fu);
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, at, left);
  return mixed(hash ^ word, seed | 1);
}

// From a number to another one, which is not kNone.
class NumberTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  void reserve(size_t count) {
    size_t slots = 16;
    while (slots * 3 / 4 <= count) slots *= 2;
    if (slots > slots_.size()) rehash(slots);
  }

  // What is there for the key: `value`, or what was there before.
  uint32_t& find_or_add(uint64_t key, uint32_t value) {
    if ((count_ + 1) * 4 > slots_.size() * 3) reserve(count_ + 1);
    Slot& slot = slots_[place_of(key)];
    if (slot.value == kNone) {
      slot = {key, value};
      ++count_;
    }
    return slot.value;
  }

  // Brings the key's place near, for a find or an add that follows soon. Requires: something was reserved.
  void prefetch(uint64_t key) const {
    __builtin_prefetch(&slots_[hash_of(key, seed_) & (slots_.size() - 1)]);
  }

  uint32_t find(uint64_t key) const { return slots_.empty() ? kNone : slots_[place_of(key)].value; }

  size_t size() const { return count_; }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t value = kNone;
  };

  size_t place_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_of(key, seed_) & mask;
    while (slots_[at].value != kNone && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void rehash(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.value != kNone) slots_[place_of(slot.key)] = slot;
  }

  uint64_t seed_ = hash_seed();
  std::vector<Slot> slots_;  // A power of two of them, at most three quarters in use.
  size_t count_ = 0;
};

}  // namespace lmemo::tokenizer
