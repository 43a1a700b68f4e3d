// BertNormalizer with a table: what becomes of each code point, found by asking the reference once.
#pragma once

#include <memory>

#include "tokenizer/fast/text_rewriter.h"

namespace lmemo::tokenizer {

struct BertTextOptions {
  bool cleans_text, sets_chinese_apart, strips_accents, lowers_case;
};

// `reference` is the BertNormalizer with these options; it has to outlive what is made.
std::unique_ptr<TextRewriter> make_bert_text(const BertTextOptions& options, const Normalizer& reference);

}  // namespace lmemo::tokenizer
