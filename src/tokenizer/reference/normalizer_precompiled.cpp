// The Precompiled normalizer.
//
// HuggingFace applies SentencePiece's map to grapheme clusters, not as SentencePiece does: a cluster under six bytes is
// replaced as a whole by what the shortest key at its front says; all else goes character by character.
#include "tokenizer/reference/normalizer_precompiled.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/base64.h"
#include "tokenizer/reference/normalizer_makers.h"
#include "tokenizer/unicode/grapheme_clusters.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kMaxClusterBytes = 5;

}  // namespace

std::string Precompiled::normalize(std::string_view utf8) const {
  std::string out;
  for (const std::string_view cluster : grapheme_clusters(utf8)) {
    if (cluster.size() <= kMaxClusterBytes) {
      if (const auto replacement = map_.replacement_of(cluster)) {
        out += *replacement;
        continue;
      }
    }
    append_by_characters(out, cluster);
  }
  return out;
}

void Precompiled::append_by_characters(std::string& out, std::string_view cluster) const {
  while (!cluster.empty()) {
    const std::string_view character = cluster.substr(0, std::max<size_t>(1, utf8_length(cluster)));
    out += map_.replacement_of(character).value_or(character);
    cluster.remove_prefix(character.size());
  }
}

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
  std::vector<PrecompiledMap::Unit> units;
  for (size_t at = 4; at < 4 + array_bytes; at += 4) units.push_back({number_at(at)});
  std::string replacements = bytes->substr(4 + array_bytes);
  for (std::string_view rest = replacements; !rest.empty(); rest.remove_prefix(utf8_length(rest)))
    if (utf8_length(rest) == 0)
      return refusal(fields.where("precompiled_charsmap"), "has replacements that are not UTF-8");
  return std::unique_ptr<Normalizer>(
      std::make_unique<Precompiled>(PrecompiledMap(std::move(units), std::move(replacements))));
}

}  // namespace lmemo::tokenizer
