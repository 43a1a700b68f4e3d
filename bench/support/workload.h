// The same entries for everyone: keys with realistic fields, values of random bytes cut from one pool, and one random
// order in which all peers are asked.
#pragma once

#include <string>
#include <vector>

#include "lmemo/key.h"

namespace lmemo::bench {

class Workload {
 public:
  // Workloads of different names share no key.
  Workload(std::string name, size_t count, uint32_t min_bytes, uint32_t max_bytes);

  const std::string& name() const { return name_; }
  size_t count() const { return keys_.size(); }
  const Key& key(size_t i) const { return keys_[i]; }
  Bytes value(size_t i) const { return Bytes(pool_).subspan(spans_[i].offset, spans_[i].byte_count); }
  uint64_t value_bytes() const { return value_bytes_; }

  // Digests of all entries, shuffled.
  std::vector<Digest> shuffled() const;
  // As many digests that no entry has.
  std::vector<Digest> absent() const;

 private:
  struct Span {
    uint32_t offset, byte_count;
  };
  std::string name_;
  std::vector<Key> keys_;
  std::vector<Span> spans_;
  std::vector<std::byte> pool_;
  uint64_t value_bytes_ = 0;
};

}  // namespace lmemo::bench
