#include "tokenizer/reference/vocabulary.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace lmemo::tokenizer {
namespace {

constexpr uint32_t kNone = NumberTable::kNone;
constexpr size_t kDirectIds = 65536;  // A table of this many ids is small, however few of them are in use.

}  // namespace

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  text_.reserve(bytes);
  entries_.reserve(tokens);
  make_room(tokens);
}

void Vocabulary::make_room(size_t tokens) {
  size_t count = slots_.empty() ? 16 : slots_.size();
  while (count * 2 / 3 <= tokens) count *= 2;
  if (count == slots_.size()) return;
  slots_.assign(count, {});
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    const uint64_t hash = hash_of(text_of(entries_[i]), seed_);
    size_t at = hash & (count - 1);
    while (slots_[at].entry != kNone) at = (at + 1) & (count - 1);
    slots_[at] = {static_cast<uint32_t>(hash >> 32), i};
  }
}

// The slot of the token, or the free one where it would be.
size_t Vocabulary::place_of(std::string_view token, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].entry != kNone; at = (at + 1) & mask)
    if (slots_[at].hash == static_cast<uint32_t>(hash >> 32) && text_of(entries_[slots_[at].entry]) == token)
      break;
  return at;
}

uint32_t Vocabulary::entry_of(uint32_t id) const {
  if (id < by_id_.size() && by_id_[id] != kNone) return by_id_[id];
  return by_distant_id_.find(id);
}

Vocabulary::Added Vocabulary::add(std::string_view token, uint32_t id) {
  assert(entries_.size() < kNone && token.size() < kNone);
  make_room(entries_.size() + 1);
  const uint64_t hash = hash_of(token, seed_);
  Slot& slot = slots_[place_of(token, hash)];
  if (slot.entry != kNone) return Added::token_is_there;
  if (entry_of(id) != kNone) return Added::id_is_there;

  const auto entry = static_cast<uint32_t>(entries_.size());
  slot = {static_cast<uint32_t>(hash >> 32), entry};
  entries_.push_back({text_.size(), static_cast<uint32_t>(token.size()), id});
  text_.append(token);
  if (id < kDirectIds + 2 * entries_.size()) {
    if (id >= by_id_.size()) by_id_.resize(size_t{id} + 1, kNone);
    by_id_[id] = entry;
  } else {
    by_distant_id_.find_or_add(id, entry);
  }
  return Added::yes;
}

std::optional<uint32_t> Vocabulary::id_of(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[place_of(token, hash_of(token, seed_))];
  if (slot.entry == kNone) return std::nullopt;
  return entries_[slot.entry].id;
}

void Vocabulary::ids_of(std::span<const std::string_view> tokens,
                        std::span<std::optional<uint32_t>> ids) const {
  assert(tokens.size() == ids.size());
  if (slots_.empty()) return std::fill(ids.begin(), ids.end(), std::nullopt);
  constexpr size_t kAtOnce = 32;
  const size_t mask = slots_.size() - 1;
  std::array<uint64_t, kAtOnce> hashes;
  std::array<uint32_t, kAtOnce> guesses;  // The entry in the first slot, which is mostly the right one.
  for (size_t from = 0; from < tokens.size(); from += kAtOnce) {
    const size_t count = std::min(kAtOnce, tokens.size() - from);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(tokens[from + i], seed_);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    for (size_t i = 0; i < count; ++i) {
      guesses[i] = slots_[hashes[i] & mask].entry;
      if (guesses[i] != kNone) __builtin_prefetch(&entries_[guesses[i]]);
    }
    for (size_t i = 0; i < count; ++i)
      if (guesses[i] != kNone) __builtin_prefetch(text_.data() + entries_[guesses[i]].start);
    for (size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[place_of(tokens[from + i], hashes[i])];
      ids[from + i].reset();
      if (slot.entry != kNone) ids[from + i] = entries_[slot.entry].id;
    }
  }
}

uint64_t Vocabulary::id_limit() const {
  uint64_t limit = 0;
  for (const Entry& entry : entries_) limit = std::max(limit, uint64_t{entry.id} + 1);
  return limit;
}

std::optional<std::string_view> Vocabulary::token_of(uint32_t id) const {
  const uint32_t entry = entry_of(id);
  if (entry == kNone) return std::nullopt;
  return text_of(entries_[entry]);
}

}  // namespace lmemo::tokenizer
