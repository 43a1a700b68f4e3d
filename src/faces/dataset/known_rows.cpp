#include "faces/dataset/known_rows.h"

#include <bit>

namespace lmemo::dataset {

void KnownRows::load(Store& store, const std::vector<Field>& recipe_fields) {
  std::vector<Digest> found;
  const Status scanned = store.scan({kRowsKind, recipe_fields}, [&](const EntryInfo& entry) {
    found.push_back(entry.digest);
    return true;
  });
  if (!scanned.ok()) return;  // A store that cannot be read is a store with nothing in it.
  for (const Digest& digest : found) {
    std::optional<Hit> hit = store.find(digest);
    if (!hit) continue;
    Result<RowPack> pack = RowPack::parse(hit->value());
    if (!pack.ok()) continue;
    row_count_ += pack->size();
    hits_.push_back(std::move(*hit));
    packs_.push_back(std::move(*pack));
  }
  build_table();
}

void KnownRows::build_table() {
  if (row_count_ == 0) return;
  slots_.assign(std::bit_ceil(row_count_ * 2), {});
  const size_t mask = slots_.size() - 1;
  for (uint32_t pack = 0; pack < packs_.size(); ++pack)
    for (uint32_t row = 0; row < packs_[pack].size(); ++row) {
      size_t at = std::hash<Digest>()(packs_[pack].digest(row)) & mask;
      while (slots_[at].pack != 0) at = (at + 1) & mask;
      slots_[at] = {pack + 1, row};
    }
}

bool KnownRows::find(const Digest& row, std::vector<uint32_t>& ids, std::vector<uint32_t>& runs) const {
  if (slots_.empty()) return false;
  const size_t mask = slots_.size() - 1;
  for (size_t at = std::hash<Digest>()(row) & mask; slots_[at].pack != 0; at = (at + 1) & mask) {
    const RowPack& pack = packs_[slots_[at].pack - 1];
    if (pack.digest(slots_[at].row) != row) continue;
    pack.read(slots_[at].row, ids, runs);
    return true;
  }
  return false;
}

void RowPutter::add(const Digest& row, std::span<const uint32_t> ids, std::span<const uint32_t> runs) {
  if (store_ == nullptr) return;
  pack_.add(row, ids, runs);
  if (pack_.is_full()) put();
}

void RowPutter::flush() {
  if (store_ == nullptr) return;
  if (!pack_.is_empty()) put();
  static_cast<void>(store_->flush());
}

// A put that fails is a lost chance; the store itself tells about it.
void RowPutter::put() {
  std::vector<Field> fields = fields_;
  fields.push_back({"rows", pack_.content()});
  const Result<Key> key = Key::of(kRowsKind, std::move(fields));
  const std::string bytes = pack_.finish();
  if (key.ok()) static_cast<void>(store_->put(*key, bytes_of(bytes)));
}

}  // namespace lmemo::dataset
