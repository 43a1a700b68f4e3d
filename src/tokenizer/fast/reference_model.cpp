#include "tokenizer/fast/reference_model.h"

#include <cassert>

namespace lmemo::tokenizer {
namespace {

class ReferenceModel final : public PieceModel {
 public:
  ReferenceModel(const Model& reference, std::string replacement)
      : reference_(reference), replacement_(std::move(replacement)) {}

  Status encode(std::string_view piece, IdBuffer& out) const override {
    std::string text;
    for (const char byte : piece)
      if (byte == ' ')
        text += replacement_;
      else
        text += byte;
    std::vector<uint32_t> ids;
    LMEMO_TRY(reference_.tokenize(text, ids));
    assert(ids.size() <= piece.size());
    out.append(ids);
    return {};
  }

 private:
  const Model& reference_;
  const std::string replacement_;
};

}  // namespace

std::unique_ptr<PieceModel> make_reference_model(const Model& reference, std::string replacement) {
  return std::make_unique<ReferenceModel>(reference, std::move(replacement));
}

}  // namespace lmemo::tokenizer
