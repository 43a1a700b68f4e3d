// The generated data behind mappings.h: nobody else includes this.
#pragma once

#include <cstdint>
#include <span>

namespace lmemo::tokenizer {

struct MappingEntry {
  char32_t from;
  uint16_t text_begin;  // Into the table's texts.
  uint16_t text_length;
};

struct CompositionPair {
  char32_t first, second, composed;
};

// All sorted by their first member (and the second).
extern const std::span<const MappingEntry> kLowercase, kCanonical, kCompatible;
extern const std::span<const char32_t> kLowercase_texts, kCanonical_texts, kCompatible_texts;
extern const std::span<const CompositionPair> kCompositions;

}  // namespace lmemo::tokenizer
