// The Precompiled normalizer: SentencePiece's character map, as HuggingFace applies it.
#pragma once

#include "tokenizer/reference/normalizer.h"
#include "tokenizer/reference/precompiled_map.h"

namespace lmemo::tokenizer {

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(PrecompiledMap map) : map_(std::move(map)) {}

  std::string normalize(std::string_view utf8) const override;

  const PrecompiledMap& map() const { return map_; }

 private:
  void append_by_characters(std::string& out, std::string_view cluster) const;

  const PrecompiledMap map_;
};

}  // namespace lmemo::tokenizer
