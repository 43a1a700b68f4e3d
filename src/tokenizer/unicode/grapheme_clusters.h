// Characters as readers see them, as far as the Precompiled normalizer tells them apart (see Grapheme in properties.h).
#pragma once

#include <string_view>
#include <vector>

namespace lmemo::tokenizer {

// Clusters of under six bytes are HuggingFace's; longer ones may be cut otherwise (flags, Indic conjuncts), which
// Precompiled cannot see.
std::vector<std::string_view> grapheme_clusters(std::string_view utf8);

}  // namespace lmemo::tokenizer
