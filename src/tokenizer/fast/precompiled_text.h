// The Precompiled normalizer with a table: what becomes of each code point that is a cluster of its own.
#pragma once

#include <memory>

#include "tokenizer/fast/text_rewriter.h"
#include "tokenizer/reference/normalizer_precompiled.h"

namespace lmemo::tokenizer {

// `reference` has to outlive what is made.
std::unique_ptr<TextRewriter> make_precompiled_text(const Precompiled& reference);

}  // namespace lmemo::tokenizer
