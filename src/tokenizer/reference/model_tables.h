// The long parts of a "model", as they stand in the file: read on the way through it, not as a tree of JSON values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/reference/vocabulary.h"

namespace lmemo::tokenizer {

// A token of Unigram.
struct ScoredToken {
  std::string_view token;
  double score;
  bool is_whole;  // Written without a point: only the identity cares.
};

// "a b" or ["a", "b"]. The right part of a line that is a comment ("#version …") has no data.
struct MergeText {
  std::string_view left;
  std::string_view right;

  bool is_comment() const { return right.data() == nullptr; }
};

// What the file does not have, or not in this form, is not there. Views are as long-lived as the document.
struct ModelTables {
  std::optional<Vocabulary> vocabulary;            // "vocab": {"token": id, …}
  std::optional<std::vector<ScoredToken>> scored;  // "vocab": [["token", score], …]
  std::optional<std::vector<MergeText>> merges;
  bool merges_are_pairs = false;
};

}  // namespace lmemo::tokenizer
