#include "tokenizer/fast/number_cut_model.h"

#include <algorithm>
#include <bitset>

#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// Of a byte, as ByteLevel shows it to Digits.
bool is_numeric(char byte) {
  static const std::bitset<256> kNumerics = [] {
    std::bitset<256> numerics;
    for (size_t at = 0; at < numerics.size(); ++at) numerics[at] = has_flag(byte_characters()[at], kNumeric);
    return numerics;
  }();
  return kNumerics[static_cast<unsigned char>(byte)];
}

bool is_three_digits(std::string_view text) {
  return text.size() == 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class NumberCutModel final : public PieceModel {
 public:
  explicit NumberCutModel(std::unique_ptr<PieceModel> inner) : inner_(std::move(inner)) {}

  Status encode(std::string_view piece, IdBuffer& out) const override {
    while (!piece.empty()) {
      const bool is_number = is_numeric(piece.front());
      const auto end =
          std::find_if(piece.begin(), piece.end(), [&](char byte) { return is_numeric(byte) != is_number; });
      const std::string_view run = piece.substr(0, static_cast<size_t>(end - piece.begin()));
      LMEMO_TRY(is_number ? encode_number(run, out) : inner_->encode(run, out));
      piece.remove_prefix(run.size());
    }
    return {};
  }

 private:
  Status encode_number(std::string_view run, IdBuffer& out) const {
    size_t start = 0;
    for (size_t at = 0; at < run.size();) {
      if (!is_three_digits(run.substr(at, 3))) {
        ++at;
        continue;
      }
      if (at > start) LMEMO_TRY(inner_->encode(run.substr(start, at - start), out));
      LMEMO_TRY(inner_->encode(run.substr(at, 3), out));
      start = at += 3;
    }
    return start < run.size() ? inner_->encode(run.substr(start), out) : Status();
  }

  const std::unique_ptr<PieceModel> inner_;
};

}  // namespace

std::unique_ptr<PieceModel> make_number_cut_model(std::unique_ptr<PieceModel> inner) {
  return std::make_unique<NumberCutModel>(std::move(inner));
}

void drop_known_numbers(std::vector<KnownPiece>& known) {
  std::erase_if(known, [](const KnownPiece& piece) {
    const uint64_t words[] = {piece.key.low, piece.key.high};
    const auto* const bytes = reinterpret_cast<const char*>(words);
    return std::any_of(bytes, bytes + (piece.key.high >> 56), is_numeric);
  });
}

}  // namespace lmemo::tokenizer
