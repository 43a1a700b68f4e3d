// The common shape of the pre-tokenizers: each piece is rewritten, cut, and its cuts finished. And how to make them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/reference/part_options.h"
#include "tokenizer/reference/pre_tokenizer.h"
#include "tokenizer/reference/regex.h"

namespace lmemo::tokenizer {

class Cutter : public PreTokenizer {
 public:
  void split(std::vector<Piece>& pieces) const final;

 protected:
  virtual void rewrite(std::u32string& text, bool starts_text) const { (void)text, (void)starts_text; }
  // What remains of the text, in order. Empty cuts are dropped.
  virtual std::vector<Match> cuts(std::u32string_view text) const = 0;
  virtual std::string finished(std::u32string_view cut) const;
};

using MadePreTokenizer = Result<std::unique_ptr<PreTokenizer>>;

// One for each "type"; the fields have been asked for their type already.
MadePreTokenizer make_byte_level(PartOptions& fields);
MadePreTokenizer make_split(PartOptions& fields);
MadePreTokenizer make_metaspace(PartOptions& fields);
MadePreTokenizer make_char_delimiter_split(PartOptions& fields);
MadePreTokenizer make_bert_pre_tokenizer(PartOptions& fields);
MadePreTokenizer make_whitespace(PartOptions& fields);
MadePreTokenizer make_whitespace_split(PartOptions& fields);
MadePreTokenizer make_punctuation(PartOptions& fields);
MadePreTokenizer make_digits(PartOptions& fields);
MadePreTokenizer make_unicode_scripts(PartOptions& fields);
MadePreTokenizer make_fixed_length(PartOptions& fields);

// {"String": "…"} or {"Regex": "…"}, of Split and of the Replace normalizer.
Result<Regex> pattern_of(PartOptions& fields);

}  // namespace lmemo::tokenizer
