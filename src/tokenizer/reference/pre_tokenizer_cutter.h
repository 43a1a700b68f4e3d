// The common shape of the pre-tokenizers: each piece is rewritten, cut, and its cuts finished. And how to make them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json_fields.h"
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
MadePreTokenizer make_byte_level(const Fields& fields);
MadePreTokenizer make_split(const Fields& fields);
MadePreTokenizer make_metaspace(const Fields& fields);
MadePreTokenizer make_char_delimiter_split(const Fields& fields);
MadePreTokenizer make_bert_pre_tokenizer(const Fields& fields);
MadePreTokenizer make_whitespace(const Fields& fields);
MadePreTokenizer make_whitespace_split(const Fields& fields);
MadePreTokenizer make_punctuation(const Fields& fields);
MadePreTokenizer make_digits(const Fields& fields);
MadePreTokenizer make_unicode_scripts(const Fields& fields);
MadePreTokenizer make_fixed_length(const Fields& fields);

// {"String": "…"} or {"Regex": "…"}, of Split and of the Replace normalizer.
Result<Regex> pattern_of(const Fields& fields);

}  // namespace lmemo::tokenizer
