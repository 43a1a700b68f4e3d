// Ids as they are made: room is asked for once per block, then they are written without a check.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "lmemo/tokenizer.h"

namespace lmemo::tokenizer {

// Some ids in a row.
struct IdRange {
  size_t first, count;
};

class IdBuffer {
 public:
  // A place for `count` more ids, and kSlack more that may be overwritten. Say with `advance_to` which of them stay.
  uint32_t* room_for(size_t count) {
    if (ids_.size() - used_ < count + kSlack) grow(count + kSlack);
    return ids_.data() + used_;
  }
  void advance_to(const uint32_t* end) { used_ = static_cast<size_t>(end - ids_.data()); }

  void append(uint32_t id) {
    *room_for(1) = id;
    ++used_;
  }
  void append(std::span<const uint32_t> ids) {
    if (ids.empty()) return;
    std::memcpy(room_for(ids.size()), ids.data(), ids.size_bytes());
    used_ += ids.size();
  }

  size_t size() const { return used_; }
  uint32_t* data() { return ids_.data(); }
  const uint32_t* data() const { return ids_.data(); }
  void cut_to(size_t count) { used_ = count; }
  std::span<const uint32_t> in(const IdRange& range) const {
    return {ids_.data() + range.first, range.count};
  }
  std::span<const uint32_t> from(size_t first) const { return {ids_.data() + first, used_ - first}; }

  size_t room() const { return ids_.size(); }  // For all, used or not.

  TokenIds take() && {
    ids_.resize(used_);
    return std::move(ids_);
  }

  // Where it is known how many there will be about, nothing is copied while they come.
  void expect(size_t count) {
    if (room() < count) extend_to(count);
  }

  static constexpr size_t kSlack = 8;

 private:
  void grow(size_t count) { extend_to(used_ + count + used_ / 2 + 1024); }

  // The vector would copy all that it has, of which most may never have been touched.
  void extend_to(size_t count) {
    TokenIds longer;
    longer.resize(count);
    if (used_ > 0) std::memcpy(longer.data(), ids_.data(), used_ * sizeof(uint32_t));
    ids_.swap(longer);
  }

  TokenIds ids_;  // Longer than what is used: growing does not touch the memory.
  size_t used_ = 0;
};

}  // namespace lmemo::tokenizer
