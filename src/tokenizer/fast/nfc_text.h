// NFC of texts that mostly have it already: only what may change is normalized.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/reference/normalizer.h"

namespace lmemo::tokenizer {

// The text itself, or its normal form in `scratch`. `nfc` is the NFC normalizer. Requires: well-formed UTF-8.
std::string_view nfc_text(std::string_view text, const Normalizer& nfc, std::string& scratch);

}  // namespace lmemo::tokenizer
