// Values that prove themselves: every byte derives from the key and a version, so a wrong, torn or stale one shows.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "lmemo/bytes.h"

namespace lmemo::test {

// SplitMix64: small, and the same in every process.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t end) { return next() % end; }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

inline uint64_t mixed(uint64_t a, uint64_t b) { return Dice(a * 0x9e3779b97f4a7c15 ^ b).next(); }

// Eight bytes of version, then bytes that only this key and version have. Mostly small, seldom large.
inline std::string versioned_value(const Digest& digest, uint64_t version) {
  uint64_t front;
  std::memcpy(&front, digest.bytes.data(), sizeof front);
  Dice dice(mixed(front, version));
  const uint64_t sizes[] = {0, 60, 700, 5'000, 20'000};
  uint64_t byte_count = sizeof version + dice.below(sizes[dice.below(5)] + 1);
  if (dice.one_in(200)) byte_count += 100'000;
  std::string value(byte_count, '\0');
  std::memcpy(value.data(), &version, sizeof version);
  for (size_t at = sizeof version; at < byte_count; at += 8) {
    const uint64_t word = dice.next();
    std::memcpy(value.data() + at, &word, std::min<size_t>(8, byte_count - at));
  }
  return value;
}

// The version, or nullopt if any byte is not what that version of that key has.
inline std::optional<uint64_t> version_in(const Digest& digest, Bytes value) {
  uint64_t version;
  if (value.size() < sizeof version) return std::nullopt;
  std::memcpy(&version, value.data(), sizeof version);
  if (text_of(value) != versioned_value(digest, version)) return std::nullopt;
  return version;
}

}  // namespace lmemo::test
