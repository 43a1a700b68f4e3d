#include "tokenizer/fast/text_rewriter.h"

#include "tokenizer/fast/nfc_text.h"

namespace lmemo::tokenizer {
namespace {

class ReferenceRewriter final : public TextRewriter {
 public:
  explicit ReferenceRewriter(const Normalizer& normalizer) : normalizer_(normalizer) {}
  std::string_view rewrite(std::string_view text, std::string& scratch) const override {
    scratch = normalizer_.normalize(text);
    return scratch;
  }

 private:
  const Normalizer& normalizer_;
};

}  // namespace

std::unique_ptr<TextRewriter> make_reference_rewriter(const Normalizer& normalizer, bool makes_nfc) {
  if (makes_nfc) return std::make_unique<NfcText>(normalizer);
  return std::make_unique<ReferenceRewriter>(normalizer);
}

}  // namespace lmemo::tokenizer
