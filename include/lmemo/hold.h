// Keeps something alive for as long as somebody holds it, like a shared pointer, but without an instruction that locks
// a cache line: every thread counts what it took and dropped in a place of its own (src/base/held_things.h).
#pragma once

#include <cstdint>
#include <utility>

namespace lmemo {

class Hold {
 public:
  Hold() = default;
  // Requires: the thing is held already, or cannot be let go meanwhile.
  explicit Hold(uint32_t thing) : thing_(thing) { take(thing_); }
  // For whoever did the taking itself.
  struct Taken {};
  Hold(uint32_t thing, Taken) : thing_(thing) {}
  Hold(const Hold& other) : thing_(other.thing_) {
    if (thing_ != 0) take(thing_);
  }
  Hold(Hold&& other) noexcept : thing_(std::exchange(other.thing_, 0)) {}
  Hold& operator=(Hold other) noexcept {
    std::swap(thing_, other.thing_);
    return *this;
  }
  ~Hold() {
    if (thing_ != 0) drop(thing_);
  }

 private:
  static void take(uint32_t thing);
  static void drop(uint32_t thing);

  uint32_t thing_ = 0;  // 0: holds nothing.
};

}  // namespace lmemo
