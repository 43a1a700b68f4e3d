#include "workload.h"

#include <algorithm>
#include <random>

#include "base/sha256.h"
#include "bench_tools.h"

namespace lmemo::bench {
namespace {

constexpr size_t kPoolBytes = size_t{32} << 20;

Key key_number(uint64_t number, std::string_view purpose) {
  std::string section = std::string(purpose) + std::to_string(number);
  section = std::string(text_of(sha256(bytes_of(section)).bytes));
  return must(Key::of("tokens", {{"section", Blob{section}}, {"tokenizer", "gpt2@a1b2c3d4"}}), "key");
}

}  // namespace

Workload::Workload(std::string name, size_t count, uint32_t min_bytes, uint32_t max_bytes)
    : name_(std::move(name)), pool_(kPoolBytes) {
  std::mt19937_64 random(count ^ max_bytes);
  for (size_t i = 0; i < kPoolBytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(pool_.data() + i, &word, 8);
  }
  keys_.reserve(count);
  spans_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    keys_.push_back(key_number(i, name_));
    const auto byte_count = static_cast<uint32_t>(min_bytes + random() % (max_bytes - min_bytes + 1));
    spans_.push_back({static_cast<uint32_t>(random() % (kPoolBytes - max_bytes)), byte_count});
    value_bytes_ += byte_count;
  }
}

std::vector<Digest> Workload::shuffled() const {
  std::vector<Digest> digests;
  digests.reserve(count());
  for (const Key& key : keys_) digests.push_back(key.digest());
  std::shuffle(digests.begin(), digests.end(), std::mt19937_64(7));
  return digests;
}

std::vector<Digest> Workload::absent() const {
  std::vector<Digest> digests;
  digests.reserve(count());
  for (size_t i = 0; i < count(); ++i) digests.push_back(key_number(i, name_ + " absent ").digest());
  return digests;
}

}  // namespace lmemo::bench
