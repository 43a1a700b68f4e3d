// How to make each kind of normalizer. The fields have been asked for their type already.
#pragma once

#include <memory>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/normalizer.h"

namespace lmemo::tokenizer {

using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

MadeNormalizer make_nfc(const Fields& fields);
MadeNormalizer make_nfd(const Fields& fields);
MadeNormalizer make_nfkc(const Fields& fields);
MadeNormalizer make_nfkd(const Fields& fields);
MadeNormalizer make_lowercase(const Fields& fields);
MadeNormalizer make_strip(const Fields& fields);
MadeNormalizer make_strip_accents(const Fields& fields);
MadeNormalizer make_nmt(const Fields& fields);
MadeNormalizer make_replace(const Fields& fields);
MadeNormalizer make_prepend(const Fields& fields);
MadeNormalizer make_byte_level_normalizer(const Fields& fields);
MadeNormalizer make_bert_normalizer(const Fields& fields);
MadeNormalizer make_precompiled(const Fields& fields);

// All characters in lower case, each on its own (no final sigma).
std::u32string lowercased(std::u32string_view text);

}  // namespace lmemo::tokenizer
