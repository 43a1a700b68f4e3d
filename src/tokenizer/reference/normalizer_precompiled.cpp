// The Precompiled normalizer: SentencePiece's character map, a double array of keys in front of their replacements.
//
// HuggingFace applies it to grapheme clusters, not as SentencePiece does: a cluster under six bytes is replaced as a
// whole by what the shortest key at its front says; all else goes character by character.
#include "base/utf8.h"
#include "tokenizer/base64.h"
#include "tokenizer/reference/normalizer_makers.h"
#include "tokenizer/unicode/grapheme_clusters.h"

#include <optional>
#include <utility>

namespace lmemo::tokenizer {
namespace {

constexpr size_t kMaxClusterBytes = 5;

// What a unit of the double array says (darts-clone).
struct Unit {
  uint32_t bits;

  bool has_value() const { return (bits >> 8 & 1) != 0; }
  uint32_t label() const { return bits & (0x80000000u | 0xFF); }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
};

class Precompiled : public Normalizer {
 public:
  Precompiled(std::vector<Unit> units, std::string replacements)
      : units_(std::move(units)), replacements_(std::move(replacements)) {}

  std::string normalize(std::string_view utf8) const override {
    std::string out;
    for (const std::string_view cluster : grapheme_clusters(utf8)) {
      if (cluster.size() <= kMaxClusterBytes) {
        if (const auto replacement = replacement_of(cluster)) {
          out += *replacement;
          continue;
        }
      }
      append_by_characters(out, cluster);
    }
    return out;
  }

 private:
  void append_by_characters(std::string& out, std::string_view cluster) const {
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, std::max<size_t>(1, utf8_length(cluster)));
      out += replacement_of(character).value_or(character);
      cluster.remove_prefix(character.size());
    }
  }

  // Of the shortest key that the text begins with.
  std::optional<std::string_view> replacement_of(std::string_view text) const {
    if (units_.empty()) return std::nullopt;
    size_t node = units_[0].offset();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size() || units_[node].label() != byte) return std::nullopt;
      const Unit unit = units_[node];
      node ^= unit.offset();
      if (!unit.has_value()) continue;
      if (node >= units_.size() || units_[node].value() > replacements_.size()) return std::nullopt;
      const std::string_view rest = std::string_view(replacements_).substr(units_[node].value());
      return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
  }

  const std::vector<Unit> units_;
  const std::string replacements_;  // Each ends with a zero byte.
};

}  // namespace

MadeNormalizer make_precompiled(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "precompiled_charsmap"}));
  LMEMO_ASSIGN(const std::string encoded, fields.text("precompiled_charsmap"));
  const std::optional<std::string> bytes = base64_decoded(encoded);
  if (!bytes || bytes->size() < 4)
    return refusal(fields.where("precompiled_charsmap"), "is not base64 of a character map");

  const auto number_at = [&](size_t at) {
    uint32_t number = 0;
    for (size_t byte = 4; byte-- > 0;) number = number << 8 | static_cast<unsigned char>((*bytes)[at + byte]);
    return number;
  };
  const size_t array_bytes = number_at(0);
  if (array_bytes % 4 != 0 || array_bytes > bytes->size() - 4)
    return refusal(fields.where("precompiled_charsmap"), "declares " + std::to_string(array_bytes) +
                                                             " bytes of keys, found " +
                                                             std::to_string(bytes->size() - 4));
  std::vector<Unit> units;
  for (size_t at = 4; at < 4 + array_bytes; at += 4) units.push_back({number_at(at)});
  std::string replacements = bytes->substr(4 + array_bytes);
  for (std::string_view rest = replacements; !rest.empty(); rest.remove_prefix(utf8_length(rest)))
    if (utf8_length(rest) == 0)
      return refusal(fields.where("precompiled_charsmap"), "has replacements that are not UTF-8");
  return std::unique_ptr<Normalizer>(
      std::make_unique<Precompiled>(std::move(units), std::move(replacements)));
}

}  // namespace lmemo::tokenizer
