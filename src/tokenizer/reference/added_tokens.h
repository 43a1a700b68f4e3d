// Tokens that are looked for in the text itself, before the normalizer or behind it, and never cut.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"
#include "tokenizer/double_array_trie.h"
#include "tokenizer/reference/model.h"
#include "tokenizer/reference/normalizer.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

struct AddedToken {
  std::string content;
  bool is_single_word = false;  // Only where no word character touches it.
  bool strips_left = false;     // Takes the white space before it along.
  bool strips_right = false;
  bool is_normalized = false;                       // Looked for in normalized text.
  bool is_special = false;                          // Left out of decoded text.
  std::optional<uint32_t> fixed_id = std::nullopt;  // In formats whose ids count.

  bool operator==(const AddedToken&) const = default;
};

Result<std::vector<AddedToken>> added_tokens_in(const nlohmann::json& json, const std::string& where);

// A stretch of a text: an added token, or what lies between.
struct Segment {
  size_t start;
  size_t end;
  std::optional<uint32_t> id;
};

class AddedTokens {
 public:
  // Gives the tokens their ids, in this order, as HuggingFace does: that of the model's token of the same name, else
  // the next free one. The ids in the file do not count; what is said last about an id does. The normalizer may be
  // null.
  static Result<AddedTokens> make(const std::vector<AddedToken>& tokens, const Model& model,
                                  const Normalizer* normalizer, const std::string& where);

  // Leftmost first, of those the longest. The segments are in order, and cover the text. Both ends of one may be the
  // same, and one may start before the last has ended, where HuggingFace gives such.
  Result<std::vector<Segment>> split_raw(std::string_view text) const { return split(text, raw_); }
  Result<std::vector<Segment>> split_normalized(std::string_view text) const {
    return split(text, normalized_);
  }

  // Whether the split would find anything at all.
  bool has_raw(std::string_view text) const { return Matcher::Walk(raw_, text).next().has_value(); }
  bool has_normalized(std::string_view text) const {
    return Matcher::Walk(normalized_, text).next().has_value();
  }
  bool any_normalized() const {
    return !normalized_.is_empty();
  }  // Any that are looked for in normalized text.
  // No token goes on behind a newline that another character follows, or takes white space along.
  bool stay_within_lines() const;
  bool have_newlines() const;  // Any of them.

  std::optional<uint32_t> id_of(std::string_view token) const;
  // What an id is decoded to: the normalized text of a token that is looked for in normalized text.
  std::optional<std::string_view> token_of(uint32_t id) const;
  bool is_special(std::string_view token) const { return special_.contains(token); }
  const TextMap<uint32_t>& ids() const { return ids_; }

 private:
  // Finds the patterns of many tokens in a text.
  class Matcher {
   public:
    bool add(std::string pattern, uint32_t id);  // False if that pattern is already there.
    void finish();                               // After the last `add`.
    bool is_empty() const { return ids_.empty(); }

    static constexpr size_t kMaxBytesToFind = 4;  // With more, looking at every byte once is faster.

    struct Found {
      size_t start, end;
      uint32_t id;
    };
    // Walks over one text: the matches from left to right, the longest at each place.
    class Walk {
     public:
      Walk(const Matcher& matcher, std::string_view text);
      std::optional<Found> next();

     private:
      std::optional<size_t> next_candidate();

      const Matcher& matcher_;
      const std::string_view text_;
      size_t at_ = 0;
      std::array<size_t, kMaxBytesToFind> next_of_byte_;  // Where each of the first bytes comes next.
    };

   private:
    TextMap<uint32_t> ids_;
    DoubleArrayTrie trie_;  // To places in `found_ids_`.
    std::vector<uint32_t> found_ids_;
    std::vector<char> first_bytes_;  // Of the patterns, each once.
    std::vector<bool> is_first_byte_;
  };

  Result<std::vector<Segment>> split(std::string_view text, const Matcher& matcher) const;

  TextMap<uint32_t> ids_;
  std::unordered_map<uint32_t, AddedToken> tokens_;
  // Where it differs from the content. What was ever said about an id stays, also if a token that is not normalized
  // takes the id over: so HuggingFace.
  std::unordered_map<uint32_t, std::string> normal_forms_;
  TextMap<bool> special_;
  Matcher raw_;
  Matcher normalized_;
};

}  // namespace lmemo::tokenizer
