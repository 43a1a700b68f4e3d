// Bytes in letters, as the character maps of SentencePiece and the rank files of tiktoken have them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lmemo::tokenizer {

// Nothing if it is not base64.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace lmemo::tokenizer
