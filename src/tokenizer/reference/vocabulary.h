// Tokens and their ids, both ways. Ids may have gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lmemo::tokenizer {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class Vocabulary {
 public:
  void reserve(size_t count) {
    ids_.reserve(count);
    tokens_.reserve(count);
  }

  // False, and nothing is added, if the token or the id is already there.
  bool add(std::string token, uint32_t id) {
    if (tokens_.contains(id)) return false;
    const auto [entry, is_new] = ids_.try_emplace(std::move(token), id);
    if (is_new) tokens_.emplace(id, &entry->first);
    return is_new;
  }

  std::optional<uint32_t> id_of(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<std::string_view> token_of(uint32_t id) const {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return std::nullopt;
    return *found->second;
  }

  size_t size() const { return ids_.size(); }

 private:
  TextMap<uint32_t> ids_;
  std::unordered_map<uint32_t, const std::string*> tokens_;  // Points to keys of ids_, which never move.
};

}  // namespace lmemo::tokenizer
