#include "faces/dataset/row_pack.h"

#include <cstring>

#include "base/little_endian.h"
#include "base/sha256.h"
#include "codec/token_width.h"

// The bytes: version, width of ids, number of rows, each 4 bytes; then the digests, the numbers of ids, the numbers of
// runs, the runs (4 bytes each), the ids. Changing this changes kVersion: old packs are then computed again.

namespace lmemo::dataset {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 12;

Error damaged(const char* what) { return {ErrorCode::corruption, std::string("a pack of rows: ") + what}; }

void append_all(std::string& to, const std::vector<uint32_t>& numbers) {
  to.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(uint32_t));
}

}  // namespace

void RowPackWriter::add(const Digest& row, std::span<const uint32_t> ids, std::span<const uint32_t> runs) {
  digests_.push_back(row);
  id_counts_.push_back(static_cast<uint32_t>(ids.size()));
  run_counts_.push_back(static_cast<uint32_t>(runs.size()));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  runs_.insert(runs_.end(), runs.begin(), runs.end());
}

Digest RowPackWriter::content() const { return sha256(std::as_bytes(std::span(digests_))); }

std::string RowPackWriter::finish() {
  const TokenWidth width = narrowest_width(ids_);
  const size_t id_bytes = ids_.size() * bytes_per_token(width);
  std::string bytes;
  bytes.reserve(kHeaderBytes + digests_.size() * 40 + runs_.size() * 4 + id_bytes);
  append_le(bytes, kVersion);
  append_le(bytes, static_cast<uint32_t>(width));
  append_le(bytes, static_cast<uint32_t>(digests_.size()));
  bytes.append(reinterpret_cast<const char*>(digests_.data()), digests_.size() * sizeof(Digest));
  append_all(bytes, id_counts_);
  append_all(bytes, run_counts_);
  append_all(bytes, runs_);
  const size_t at = bytes.size();
  bytes.resize(at + id_bytes);
  pack_tokens(ids_, width, bytes.data() + at);
  *this = RowPackWriter();
  return bytes;
}

Result<RowPack> RowPack::parse(Bytes bytes) {
  if (bytes.size() < kHeaderBytes) return damaged("it is cut off");
  if (load_le<uint32_t>(bytes.data()) != kVersion)
    return Error{ErrorCode::incompatible, "a pack of rows of another version"};
  RowPack pack;
  pack.bytes_ = bytes;
  pack.width_ = load_le<uint32_t>(bytes.data() + 4);
  pack.row_count_ = load_le<uint32_t>(bytes.data() + 8);
  if (pack.width_ < 2 || pack.width_ > 4) return damaged("its ids have no known width");
  const uint64_t fixed = kHeaderBytes + uint64_t{pack.row_count_} * (sizeof(Digest) + 8);
  if (fixed > bytes.size()) return damaged("it is cut off");

  pack.counts_at_ = kHeaderBytes + pack.row_count_ * sizeof(Digest);
  uint64_t ids = 0, runs = 0;
  pack.id_starts_.reserve(pack.row_count_ + 1);
  pack.run_starts_.reserve(pack.row_count_ + 1);
  for (size_t row = 0; row <= pack.row_count_; ++row) {
    if (ids > bytes.size() || runs > bytes.size()) return damaged("its lengths do not fit");
    pack.id_starts_.push_back(static_cast<uint32_t>(ids));
    pack.run_starts_.push_back(static_cast<uint32_t>(runs));
    if (row == pack.row_count_) break;
    ids += load_le<uint32_t>(bytes.data() + pack.counts_at_ + 4 * row);
    runs += load_le<uint32_t>(bytes.data() + pack.counts_at_ + 4 * (pack.row_count_ + row));
  }
  pack.runs_at_ = fixed;
  pack.ids_at_ = fixed + 4 * runs;
  if (pack.ids_at_ + ids * pack.width_ != bytes.size()) return damaged("its lengths do not fit");
  for (size_t row = 0; row < pack.row_count_; ++row) {
    uint64_t sum = 0;
    for (uint32_t run = pack.run_starts_[row]; run < pack.run_starts_[row + 1]; ++run)
      sum += load_le<uint32_t>(bytes.data() + pack.runs_at_ + 4 * size_t{run});
    if (sum != pack.id_starts_[row + 1] - pack.id_starts_[row]) return damaged("a row's runs do not add up");
  }
  return pack;
}

Digest RowPack::digest(size_t row) const {
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes_.data() + kHeaderBytes + row * sizeof digest, sizeof digest);
  return digest;
}

void RowPack::read(size_t row, std::vector<uint32_t>& ids, std::vector<uint32_t>& runs) const {
  const size_t id_count = id_starts_[row + 1] - id_starts_[row];
  const size_t run_count = run_starts_[row + 1] - run_starts_[row];
  const size_t ids_before = ids.size(), runs_before = runs.size();
  ids.resize(ids_before + id_count);
  unpack_tokens(bytes_.subspan(ids_at_ + size_t{id_starts_[row]} * width_, id_count * width_),
                static_cast<TokenWidth>(width_), ids.data() + ids_before);
  runs.resize(runs_before + run_count);
  if (run_count == 0) return;  // Both vectors may have no memory at all.
  std::memcpy(runs.data() + runs_before, bytes_.data() + runs_at_ + 4 * size_t{run_starts_[row]},
              4 * run_count);
}

}  // namespace lmemo::dataset
