// A tokenizer.json that a stranger wrote, read once: bounded in depth and size, no key twice, numbers as serde_json
// reads them. The vocabulary and the merges go straight into tables; all else is small, and a tree.
#pragma once

#include <future>
#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

#include "lmemo/bytes.h"
#include "lmemo/result.h"
#include "tokenizer/reference/model_tables.h"

namespace lmemo::tokenizer {

class JsonReader;

// Outside of the tables. A list of 250,000 added tokens has less.
inline constexpr size_t kMaxJsonValues = size_t{1} << 21;
inline constexpr size_t kMaxTokens = size_t{1} << 24;
inline constexpr size_t kMaxMerges = size_t{1} << 25;

class TokenizerDocument {
 public:
  // Requires: the text outlives the document. An error names the byte, the key or the place where the trouble is.
  static Result<TokenizerDocument> read(std::string_view text);

  TokenizerDocument(TokenizerDocument&&) noexcept;
  TokenizerDocument& operator=(TokenizerDocument&&) noexcept;
  ~TokenizerDocument();

  nlohmann::json tree;  // With {} or [] in the place of what is in `tables`.
  ModelTables tables;   // Of "model".

  // The SHA-256 of `rules` and the whole document as JSON without blanks, keys sorted: the order of keys does not count.
  // That of a large one is made by another thread, while the model is built. Requires: until it is there, the document
  // stays and nothing of it changes; but the vocabulary may be moved into the model.
  std::future<Digest> identity(std::string_view rules) const;

 private:
  explicit TokenizerDocument(std::unique_ptr<JsonReader> reader);

  std::unique_ptr<JsonReader> reader_;  // Keeps the texts that had escapes.
};

}  // namespace lmemo::tokenizer
