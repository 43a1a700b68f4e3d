// The split patterns of byte-level tokenizers, by hand: GPT-2, cl100k (Llama-3, Qwen), o200k (Tekken).
//
// They are one pattern with few differences. SplitRules names them; one plain walker does all of them for any text,
// and on ASCII a block of 64 bytes is cut at once with masks, where the CPU has AVX2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tokenizer/fast/char_borders.h"
#include "tokenizer/fast/piece_splitter.h"

namespace lmemo::tokenizer {

struct SplitRules {
  enum class Numbers : uint8_t { run_behind_space, single, up_to_three };
  enum class Contractions : uint8_t { none, lower_case, any_case, at_end };  // at_end: of words, any case.
  enum class Swallows : uint8_t { nothing, newlines, newlines_and_slashes };

  Numbers numbers = Numbers::run_behind_space;
  Contractions contractions = Contractions::none;
  Swallows symbols_swallow = Swallows::nothing;  // What may follow a run of symbols, and belongs to it.
  // Words take any one character before them that is no letter, digit or newline; else a space.
  bool any_prefix = false;
  bool cut_at_case = false;         // Words end where a capital follows a small letter.
  bool marks_are_letters = false;   // \p{M} in words.
  bool newlines_end_space = false;  // \s*[\r\n]+

  bool operator==(const SplitRules&) const = default;
};

inline constexpr SplitRules kGpt2Rules{.numbers = SplitRules::Numbers::run_behind_space,
                                       .contractions = SplitRules::Contractions::lower_case};
inline constexpr SplitRules kCl100kRules{.numbers = SplitRules::Numbers::up_to_three,
                                         .contractions = SplitRules::Contractions::any_case,
                                         .symbols_swallow = SplitRules::Swallows::newlines,
                                         .any_prefix = true,
                                         .newlines_end_space = true};
inline constexpr SplitRules kQwen2Rules{.numbers = SplitRules::Numbers::single,
                                        .contractions = SplitRules::Contractions::any_case,
                                        .symbols_swallow = SplitRules::Swallows::newlines,
                                        .any_prefix = true,
                                        .newlines_end_space = true};
inline constexpr SplitRules kQwen35Rules{.numbers = SplitRules::Numbers::single,
                                         .contractions = SplitRules::Contractions::any_case,
                                         .symbols_swallow = SplitRules::Swallows::newlines,
                                         .any_prefix = true,
                                         .marks_are_letters = true,
                                         .newlines_end_space = true};
inline constexpr SplitRules kO200kRules{.numbers = SplitRules::Numbers::up_to_three,
                                        .contractions = SplitRules::Contractions::at_end,
                                        .symbols_swallow = SplitRules::Swallows::newlines_and_slashes,
                                        .any_prefix = true,
                                        .cut_at_case = true,
                                        .newlines_end_space = true};
inline constexpr SplitRules kTekkenRules{.numbers = SplitRules::Numbers::single,
                                         .symbols_swallow = SplitRules::Swallows::newlines_and_slashes,
                                         .any_prefix = true,
                                         .cut_at_case = true,
                                         .newlines_end_space = true};

// The rules of a pattern as it stands in tokenizer.json, letter by letter; nothing if it is another.
std::optional<SplitRules> split_rules_of(std::string_view regex);

// Pieces are cut further at free `borders`, if that is not null. `use_simd` false: the plain walker alone, for tests
// and for CPUs without AVX2.
std::unique_ptr<PieceSplitter> make_pattern_splitter(const SplitRules& rules,
                                                     std::shared_ptr<const CharBorders> borders,
                                                     bool use_simd);

}  // namespace lmemo::tokenizer
