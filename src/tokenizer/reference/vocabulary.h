// Tokens and their ids, both ways, in few blocks of memory. Ids may have gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/flat_table.h"

namespace lmemo::tokenizer {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class Vocabulary {
 public:
  enum class Added { yes, token_is_there, id_is_there };

  void reserve(size_t tokens, size_t bytes);
  // Nothing is added if the token or the id is already there.
  Added add(std::string_view token, uint32_t id);

  std::optional<uint32_t> id_of(std::string_view token) const;
  // The same for many at once, in a fraction of the time: what each needs is fetched while others are looked at.
  void ids_of(std::span<const std::string_view> tokens, std::span<std::optional<uint32_t>> ids) const;
  std::optional<std::string_view> token_of(uint32_t id) const;
  size_t size() const { return entries_.size(); }
  uint64_t id_limit() const;  // One more than the largest id; 0 if there is none.

  // Calls visit(token, id) for all, in the order in which they were added.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : entries_) visit(text_of(entry), entry.id);
  }

 private:
  struct Entry {
    uint64_t start;  // In text_.
    uint32_t byte_count;
    uint32_t id;
  };
  struct Slot {
    uint32_t hash = 0;  // Spares most looks at the text of another token.
    uint32_t entry = NumberTable::kNone;
  };

  std::string_view text_of(const Entry& entry) const {
    return std::string_view(text_).substr(entry.start, entry.byte_count);
  }
  uint32_t entry_of(uint32_t id) const;
  size_t place_of(std::string_view token, uint64_t hash) const;
  void make_room(size_t tokens);

  uint64_t seed_ = hash_seed();
  std::string text_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;      // By the hash of the token; a power of two of them.
  std::vector<uint32_t> by_id_;  // Entries of ids that are not far beyond the number of tokens,
  NumberTable by_distant_id_;    // and of the others: an id of four billion costs no more than any.
};

}  // namespace lmemo::tokenizer
