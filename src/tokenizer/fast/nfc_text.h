// NFC of texts that mostly have it already: only what may change is normalized.
#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "tokenizer/fast/text_rewriter.h"

namespace lmemo::tokenizer {

class NfcText final : public TextRewriter {
 public:
  // The NFC normalizer, which has to outlive it.
  explicit NfcText(const Normalizer& nfc);

  std::string_view rewrite(std::string_view text, std::string& scratch) const override;

 private:
  bool may_change(std::string_view text, size_t at) const;
  size_t end_of_untouched(std::string_view text, size_t at) const;

  const Normalizer& nfc_;
  std::bitset<256> is_touched_;      // By the first byte: whether there is a character that may change.
  std::bitset<0x10000> may_change_;  // Of the characters below U+10000.
};

}  // namespace lmemo::tokenizer
