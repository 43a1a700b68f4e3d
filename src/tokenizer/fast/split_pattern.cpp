#include "tokenizer/fast/split_pattern.h"

#include "base/cpu.h"
#include "tokenizer/fast/split_walker.h"

namespace lmemo::tokenizer {
namespace {

struct NamedPattern {
  std::string_view regex;
  SplitRules rules;
};

#define LMEMO_SHORT R"('s|'t|'re|'ve|'m|'ll|'d)"
#define LMEMO_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LMEMO_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LMEMO_PREFIX R"([^\r\n\p{L}\p{N}]?)"
constexpr NamedPattern kPatterns[] = {
    {LMEMO_SHORT R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2Rules},
    {"(?i:" LMEMO_SHORT ")|" LMEMO_PREFIX
     R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kCl100kRules},
    {"(?i:" LMEMO_SHORT ")|" LMEMO_PREFIX
     R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kQwen2Rules},
    {"(?i:" LMEMO_SHORT ")|" LMEMO_PREFIX
     R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kQwen35Rules},
    {LMEMO_PREFIX LMEMO_UPPER "*" LMEMO_LOWER "+(?i:" LMEMO_SHORT ")?|" LMEMO_PREFIX LMEMO_UPPER
                              "+" LMEMO_LOWER "*(?i:" LMEMO_SHORT
                              R"()?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kO200kRules},
    {LMEMO_PREFIX LMEMO_UPPER "*" LMEMO_LOWER "+|" LMEMO_PREFIX LMEMO_UPPER "+" LMEMO_LOWER
                              R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kTekkenRules},
};

class PlainSplitter final : public PieceSplitter {
 public:
  PlainSplitter(const SplitRules& rules, std::shared_ptr<const CharBorders> borders)
      : walker_(rules), borders_(std::move(borders)) {}

  size_t split(const char* begin, const char* end, PieceSpan* pieces, size_t capacity,
               const char*& next) const override {
    return split_by(walker_, borders_.get(), begin, end, pieces, capacity, next);
  }

 private:
  const SplitWalker walker_;
  const std::shared_ptr<const CharBorders> borders_;
};

}  // namespace

std::optional<SplitRules> split_rules_of(std::string_view regex) {
  for (const NamedPattern& pattern : kPatterns)
    if (pattern.regex == regex) return pattern.rules;
  return std::nullopt;
}

std::unique_ptr<PieceSplitter> make_pattern_splitter(const SplitRules& rules,
                                                     std::shared_ptr<const CharBorders> borders,
                                                     bool use_simd) {
#if defined(__x86_64__)
  if (use_simd && cpu_has_avx2()) return make_avx2_splitter(rules, std::move(borders));
#endif
  (void)use_simd;
  return std::make_unique<PlainSplitter>(rules, std::move(borders));
}

}  // namespace lmemo::tokenizer
