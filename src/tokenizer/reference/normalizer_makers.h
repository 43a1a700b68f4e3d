// How to make each kind of normalizer. The fields have been asked for their type already.
#pragma once

#include <memory>

#include "tokenizer/reference/normalizer.h"
#include "tokenizer/reference/part_options.h"

namespace lmemo::tokenizer {

using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

MadeNormalizer make_nfc(PartOptions& fields);
MadeNormalizer make_nfd(PartOptions& fields);
MadeNormalizer make_nfkc(PartOptions& fields);
MadeNormalizer make_nfkd(PartOptions& fields);
MadeNormalizer make_lowercase(PartOptions& fields);
MadeNormalizer make_strip(PartOptions& fields);
MadeNormalizer make_strip_accents(PartOptions& fields);
MadeNormalizer make_nmt(PartOptions& fields);
MadeNormalizer make_replace(PartOptions& fields);
MadeNormalizer make_prepend(PartOptions& fields);
MadeNormalizer make_byte_level_normalizer(PartOptions& fields);
MadeNormalizer make_bert_normalizer(PartOptions& fields);
MadeNormalizer make_precompiled(PartOptions& fields);

// All characters in lower case, each on its own (no final sigma).
std::u32string lowercased(std::u32string_view text);

}  // namespace lmemo::tokenizer
