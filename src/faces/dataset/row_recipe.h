// How a line becomes a row of ids, as far as the line alone decides: everything that goes into the key of a stored row.
// What is done to rows afterwards (cutting, padding, splitting) is not in here, so changing it tokenises nothing again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lmemo/dataset.h"
#include "lmemo/key.h"
#include "lmemo/tokenizer.h"
#include "sources/json_lines.h"

namespace lmemo::dataset {

enum class RowFields { text, messages, prompt };
enum class RowTemplate { none, chatml, rendered };

struct RowRecipe {
  RowFields fields = RowFields::text;
  FieldPath first;   // Text, messages or prompt.
  FieldPath second;  // Completion.
  RowTemplate template_kind = RowTemplate::none;
  std::string template_text = {};  // Of rendered.
  RowLoss loss = RowLoss::all;
  std::optional<uint32_t> eos_id = {};  // What is appended; none: nothing.
  Digest tokenizer_identity;

  // What a stored row is stored under, but for the row itself.
  std::vector<Field> key_fields() const;
};

// What is known of a tokenizer without loading it again.
struct TokenizerFacts {
  Digest identity;
  uint64_t vocab_size = 0;
  std::optional<uint32_t> eos_id = {};
  std::optional<uint32_t> pad_id = {};
  std::string chat_template = {};
  bool has_chat_template = false;
  std::string foreign_engine = {};  // That runs it, with its version; empty: ours does.
};

// Loads it and asks. invalid_argument if eos_token or pad_token name no token.
Result<TokenizerFacts> facts_of(const DatasetOptions& options, const Tokenizer& tokenizer);

// invalid_argument if the options do not go together.
Result<RowRecipe> recipe_of(const DatasetOptions& options, const TokenizerFacts& facts);

}  // namespace lmemo::dataset
