#include "tokenizer/unicode/properties.h"

#include "tokenizer/unicode/properties_table.h"

#include <algorithm>
#include <array>
#include <vector>

namespace lmemo::tokenizer {
namespace {

constexpr char32_t kCodePoints = 0x110000;
constexpr size_t kBlock = 256;

// The runs spread out into blocks on first use; most of the 4,352 blocks are alike and shared.
struct TwoStages {
  std::array<uint16_t, kCodePoints / kBlock> block_of;
  std::vector<uint16_t> records;  // kBlock a block.

  TwoStages() {
    size_t run = 0;
    std::array<uint16_t, kBlock> block;
    for (char32_t first = 0; first < kCodePoints; first += kBlock) {
      // Most blocks lie in one run, as the one before.
      const bool is_inside =
          run + 1 == kPropertyRuns.size() || kPropertyRuns[run + 1].first >= first + kBlock;
      if (is_inside && first >= kBlock && kPropertyRuns[run].first <= first - kBlock) {
        block_of[first / kBlock] = block_of[first / kBlock - 1];
        continue;
      }
      for (size_t at = 0; at < kBlock; ++at) {
        while (run + 1 < kPropertyRuns.size() && kPropertyRuns[run + 1].first <= first + at) ++run;
        block[at] = kPropertyRuns[run].record;
      }
      block_of[first / kBlock] = number_of(block);
    }
  }

 private:
  uint16_t number_of(const std::array<uint16_t, kBlock>& block) {
    const size_t known = records.size() / kBlock;
    for (size_t number = known; number-- > 0;)  // The newest first: equal blocks are neighbours.
      if (std::equal(block.begin(), block.end(),
                     records.begin() + static_cast<std::ptrdiff_t>(number * kBlock)))
        return static_cast<uint16_t>(number);
    records.insert(records.end(), block.begin(), block.end());
    return static_cast<uint16_t>(known);
  }
};

}  // namespace

const CharacterProperties& properties_of(char32_t code_point) {
  static const TwoStages stages;
  return kPropertyRecords[stages
                              .records[stages.block_of[code_point / kBlock] * kBlock + code_point % kBlock]];
}

std::vector<PropertyRange> property_ranges() {
  std::vector<PropertyRange> ranges;
  for (size_t run = 0; run < kPropertyRuns.size(); ++run) {
    const char32_t next = run + 1 < kPropertyRuns.size() ? kPropertyRuns[run + 1].first : kCodePoints;
    ranges.push_back({kPropertyRuns[run].first, next - 1, kPropertyRecords[kPropertyRuns[run].record]});
  }
  return ranges;
}

}  // namespace lmemo::tokenizer
