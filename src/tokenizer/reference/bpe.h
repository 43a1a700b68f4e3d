// Byte pair encoding: characters, joined pair by pair in the order of the merge list.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/flat_table.h"
#include "tokenizer/reference/model.h"
#include "tokenizer/reference/model_tables.h"
#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

struct BpeOptions {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;  // Put before every character but the first.
  std::string end_of_word_suffix;         // Put behind the last character.
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // A whole piece that is a token wins, also if no merges lead to it.
};

// Two neighbours and the token that they become; the lowest rank first.
struct BpeMerge {
  uint32_t left;
  uint32_t right;
  uint32_t id;
  uint32_t rank;  // The place in the merge list. Several may share one, see of_ranks().
};

class Bpe final : public Model {
 public:
  // `merges` in order of priority. Refuses a merge whose parts or whose result are no tokens.
  static Result<std::unique_ptr<Model>> make(Vocabulary vocabulary, std::span<const MergeText> merges,
                                             BpeOptions options, const std::string& where);

  // As tiktoken: any two neighbours merge if together they are a token, the lowest id first, of those the leftmost.
  // All ways to make a token have its id as their rank.
  static std::unique_ptr<Bpe> of_ranks(Vocabulary vocabulary, BpeOptions options);

  Status tokenize(std::string_view piece, std::vector<uint32_t>& ids) const override;
  std::optional<uint32_t> id_of(std::string_view token) const override { return vocabulary_.id_of(token); }
  std::optional<std::string_view> token_of(uint32_t id) const override { return vocabulary_.token_of(id); }
  size_t vocab_size() const override { return vocabulary_.size(); }
  uint64_t id_limit() const override { return vocabulary_.id_limit(); }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const BpeOptions& options() const { return options_; }
  // In order of rank. Of a pair that stands twice in the list the last one is in force, and the only one here.
  std::span<const BpeMerge> merges() const { return merges_; }

 private:
  // A part of the piece that is one token so far. Parts form a list; one that was merged away has no bytes.
  struct Symbol {
    uint32_t id;
    size_t byte_count;
    size_t previous;
    size_t next;
  };

  Bpe(Vocabulary vocabulary, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {}

  Status add_merges(std::span<const MergeText> merges, size_t from, size_t to, const std::string& where);
  void drop_outdated();
  Result<std::vector<Symbol>> symbols_of(std::string_view piece) const;
  void merge_all(std::vector<Symbol>& symbols) const;
  const BpeMerge* merge_of(uint32_t left, uint32_t right) const;

  Vocabulary vocabulary_;
  BpeOptions options_;
  std::vector<BpeMerge> merges_;
  NumberTable merge_at_;  // Places in merges_, by left id << 32 | right id.
};

}  // namespace lmemo::tokenizer
