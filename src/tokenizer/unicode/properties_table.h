// The generated data behind properties.h: nobody else includes this.
#pragma once

#include <cstdint>
#include <span>

#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {

struct PropertyRun {
  char32_t first;  // Up to the next run's first.
  uint16_t record;
};

extern const std::span<const CharacterProperties> kPropertyRecords;
extern const std::span<const PropertyRun> kPropertyRuns;

}  // namespace lmemo::tokenizer
