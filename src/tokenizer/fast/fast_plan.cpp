#include "tokenizer/fast/fast_plan.h"

#include <nlohmann/json.hpp>

#include "tokenizer/fast/apart_splitter.h"
#include "tokenizer/fast/bert_text.h"
#include "tokenizer/fast/byte_level_bpe.h"
#include "tokenizer/fast/deepseek_splitter.h"
#include "tokenizer/fast/marked_text.h"
#include "tokenizer/fast/number_cut_model.h"
#include "tokenizer/fast/precompiled_text.h"
#include "tokenizer/fast/reference_model.h"
#include "tokenizer/fast/regex_splitter.h"
#include "tokenizer/fast/sentence_bpe.h"
#include "tokenizer/fast/split_pattern.h"
#include "tokenizer/fast/trie_unigram.h"
#include "tokenizer/fast/trie_wordpiece.h"
#include "tokenizer/fast/word_splitter.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/code_points.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

// The part under this name; null if there is none. The file was read without complaint, so types are right.
const Json& part_of(const Json& json, const char* name) {
  static const Json kNull;
  const auto found = json.find(name);
  return found == json.end() ? kNull : *found;
}

bool is_type(const Json& part, const char* type) { return part.is_object() && part_of(part, "type") == type; }

bool flag(const Json& part, const char* name, bool otherwise) {
  const Json& value = part_of(part, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

struct ByteLevelSplit {
  std::optional<SplitRules> rules;        // None: DeepSeek's, or `regex`.
  std::optional<std::string> regex = {};  // Any other pattern.
  bool adds_space = false;
  bool sets_digits_apart = false;
  bool is_falcon = false;  // Punctuation apart before ByteLevel, numbers by threes behind it.
};

// What Falcon has around ByteLevel.
bool is_falcon_split(const Json& steps) {
  static const Json kBefore = {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
  static const Json kDigits = {{"type", "Digits"}, {"individual_digits", false}};
  static const Json kThrees = {{"type", "Split"},
                               {"pattern", {{"Regex", "[0-9][0-9][0-9]"}}},
                               {"behavior", "Isolated"},
                               {"invert", false}};
  return steps.size() == 4 && steps[0] == kBefore && is_type(steps[1], "ByteLevel") &&
         !flag(steps[1], "add_prefix_space", true) && flag(steps[1], "use_regex", true) &&
         steps[2] == kDigits && steps[3] == kThrees;
}

// Of the step that is followed by ByteLevel, if it is a Split at a pattern.
std::optional<ByteLevelSplit> pattern_split_of(const Json& step) {
  const Json& regex = part_of(part_of(step, "pattern"), "Regex");
  const bool is_plain =
      is_type(step, "Split") && part_of(step, "behavior") == "Isolated" && !flag(step, "invert", false);
  if (!is_plain || !regex.is_string()) return std::nullopt;
  const std::string& pattern = regex.get_ref<const std::string&>();
  const std::optional<SplitRules> rules = split_rules_of(pattern);
  if (rules) return ByteLevelSplit{.rules = rules};
  return ByteLevelSplit{.rules = {}, .regex = pattern};
}

std::optional<ByteLevelSplit> byte_level_split_of(const Json& pre_tokenizer) {
  if (is_type(pre_tokenizer, "ByteLevel")) {
    if (!flag(pre_tokenizer, "use_regex", true)) return std::nullopt;
    return ByteLevelSplit{.rules = kGpt2Rules, .adds_space = flag(pre_tokenizer, "add_prefix_space", true)};
  }
  if (!is_type(pre_tokenizer, "Sequence")) return std::nullopt;
  const Json& steps = part_of(pre_tokenizer, "pretokenizers");
  if (is_falcon_split(steps)) return ByteLevelSplit{.rules = kGpt2Rules, .is_falcon = true};
  if (steps.size() < 2 || !is_type(steps.back(), "ByteLevel") || flag(steps.back(), "add_prefix_space", true))
    return std::nullopt;
  if (flag(steps.back(), "use_regex", true)) {
    const bool is_digits =
        steps.size() == 2 && is_type(steps[0], "Digits") && flag(steps[0], "individual_digits", false);
    if (!is_digits) return std::nullopt;
    return ByteLevelSplit{.rules = kGpt2Rules, .sets_digits_apart = true};
  }
  if (is_deepseek_split(steps)) return ByteLevelSplit{};
  return steps.size() == 2 ? pattern_split_of(steps[0]) : std::nullopt;
}

std::unique_ptr<PieceSplitter> splitter_of(const ByteLevelSplit& split,
                                           std::shared_ptr<const CharBorders> borders, bool use_simd) {
  if (split.regex) return make_regex_splitter(*split.regex, std::move(borders));
  if (!split.rules) return make_deepseek_splitter(std::move(borders));
  if (split.is_falcon) borders = nullptr;  // What is cut behind ByteLevel has others.
  std::unique_ptr<PieceSplitter> splitter = make_pattern_splitter(*split.rules, std::move(borders), use_simd);
  if (split.is_falcon) return make_apart_splitter(kPunctuation, Apart::runs, std::move(splitter));
  if (split.sets_digits_apart) return make_apart_splitter(kNumeric, Apart::each, std::move(splitter));
  return splitter;
}

// How the text is normalized. What is not known here is left to the reference.
struct Normalizing {
  // What becomes of a newline. It has no part in what becomes of the characters around it, unless `unknown`.
  enum class Newlines : uint8_t { stay, become_space, unknown };

  std::unique_ptr<TextRewriter> rewriter = nullptr;  // Null: the text stays as it is.
  Newlines newlines = Newlines::stay;
};

Normalizing normalizing_of(const Json& json, const Normalizer* normalizer) {
  if (!normalizer || (is_type(json, "Sequence") && part_of(json, "normalizers").empty())) return {};
  if (is_type(json, "NFC")) return {make_reference_rewriter(*normalizer, true)};
  if (is_type(json, "BertNormalizer")) {
    const bool lowers_case = flag(json, "lowercase", true);
    const BertTextOptions options{.cleans_text = flag(json, "clean_text", true),
                                  .sets_chinese_apart = flag(json, "handle_chinese_chars", true),
                                  .strips_accents = flag(json, "strip_accents", lowers_case),
                                  .lowers_case = lowers_case};
    return {make_bert_text(options, *normalizer), Normalizing::Newlines::become_space};
  }
  if (const auto* precompiled = dynamic_cast<const Precompiled*>(normalizer)) {
    const std::string newline = precompiled->normalize("\n");
    const auto newlines = newline == "\n"  ? Normalizing::Newlines::stay
                          : newline == " " ? Normalizing::Newlines::become_space
                                           : Normalizing::Newlines::unknown;
    return {make_precompiled_text(*precompiled), newlines};
  }
  return {make_reference_rewriter(*normalizer, false), Normalizing::Newlines::unknown};
}

std::optional<FastPlan> byte_level_plan(const Json& file, const Parts& parts, const Bpe& bpe, bool use_simd) {
  const std::optional<ByteLevelSplit> split = byte_level_split_of(part_of(file, "pre_tokenizer"));
  if (!split) return std::nullopt;
  FastPlan plan;
  std::unique_ptr<ByteLevelBpe> model = ByteLevelBpe::make(bpe, plan.known);
  if (!model) return std::nullopt;

  Normalizing normalizing = normalizing_of(part_of(file, "normalizer"), parts.normalizer.get());
  plan.normalizer = std::move(normalizing.rewriter);
  plan.adds_space = split->adds_space;
  plan.may_cut_at_lines =
      normalizing.newlines == Normalizing::Newlines::stay && !split->adds_space && !split->regex;
  plan.splitter = splitter_of(*split, model->borders(), use_simd);
  if (!plan.splitter) return std::nullopt;
  plan.model = std::move(model);
  if (split->is_falcon) {
    plan.model = make_number_cut_model(std::move(plan.model));
    drop_known_numbers(plan.known);
  }
  return plan;
}

// Replace(" " by "▁").
bool replaces_blanks(const Json& step) {
  return is_type(step, "Replace") && part_of(part_of(step, "pattern"), "String") == " " &&
         part_of(step, "content") == kBlankMark;
}

// A normalizer that makes blanks "▁", and perhaps puts one before the text.
std::optional<MarkedTextOptions> marking_normalizer_of(const Json& normalizer) {
  if (replaces_blanks(normalizer))
    return MarkedTextOptions{.replacement = kBlankMarkChar, .front = FrontMark::none};
  if (!is_type(normalizer, "Sequence")) return std::nullopt;
  const Json& steps = part_of(normalizer, "normalizers");
  if (steps.size() != 2 || !is_type(steps[0], "Prepend") || part_of(steps[0], "prepend") != kBlankMark ||
      !replaces_blanks(steps[1]))
    return std::nullopt;
  return MarkedTextOptions{.replacement = kBlankMarkChar, .front = FrontMark::prepended};
}

// After that normalizer there are no blanks to split at.
bool leaves_marked_text_whole(const Json& pre_tokenizer) {
  if (pre_tokenizer.is_null()) return true;
  const bool keeps_all =
      part_of(pre_tokenizer, "behavior") != "Removed" || !flag(pre_tokenizer, "invert", false);
  return is_type(pre_tokenizer, "Split") && part_of(part_of(pre_tokenizer, "pattern"), "String") == " " &&
         keeps_all;
}

std::optional<FastPlan> wordpiece_plan(const Json& file, const Parts& parts, const WordPiece& wordpiece) {
  if (!is_type(part_of(file, "pre_tokenizer"), "BertPreTokenizer")) return std::nullopt;
  Normalizing normalizing = normalizing_of(part_of(file, "normalizer"), parts.normalizer.get());
  FastPlan plan;
  plan.normalizer = std::move(normalizing.rewriter);
  plan.may_cut_at_lines = normalizing.newlines != Normalizing::Newlines::unknown;
  plan.splitter = make_word_splitter();
  plan.model = std::make_unique<TrieWordPiece>(wordpiece);
  return plan;
}

// Metaspace, or WhitespaceSplit and then Metaspace.
std::optional<MarkedTextOptions> metaspace_of(const Json& pre_tokenizer) {
  const Json* metaspace = &pre_tokenizer;
  bool splits_at_white_space = false;
  if (is_type(pre_tokenizer, "Sequence")) {
    const Json& steps = part_of(pre_tokenizer, "pretokenizers");
    if (steps.size() != 2 || !is_type(steps[0], "WhitespaceSplit")) return std::nullopt;
    splits_at_white_space = true;
    metaspace = &steps[1];
  }
  if (!is_type(*metaspace, "Metaspace")) return std::nullopt;
  const Json& scheme = part_of(*metaspace, "prepend_scheme");
  return MarkedTextOptions{
      .replacement = char_at(part_of(*metaspace, "replacement").get_ref<const std::string&>(), 0),
      .splits_at_white_space = splits_at_white_space,
      .splits_at_marks = flag(*metaspace, "split", true),
      .front = scheme == "never"   ? FrontMark::none
               : scheme == "first" ? FrontMark::of_text
                                   : FrontMark::of_stretch};
}

// Marks by the normalizer or by Metaspace: newer files of the same models have the latter.
std::optional<FastPlan> sentence_plan(const Json& file, const Parts& parts, const Bpe& bpe) {
  FastPlan plan;
  const Json& pre_tokenizer = part_of(file, "pre_tokenizer");
  std::optional<MarkedTextOptions> options = marking_normalizer_of(part_of(file, "normalizer"));
  if (options) {
    if (!leaves_marked_text_whole(pre_tokenizer) || parts.added_tokens.any_normalized()) return std::nullopt;
  } else {
    options = metaspace_of(pre_tokenizer);
    if (!options || options->replacement != kBlankMarkChar) return std::nullopt;
    plan.normalizer = normalizing_of(part_of(file, "normalizer"), parts.normalizer.get()).rewriter;
  }
  std::unique_ptr<SentenceBpe> model = SentenceBpe::make(bpe, plan.known);
  plan.marker = make_marked_text(*options);
  if (!model || !plan.marker) return std::nullopt;
  // Behind a newline that is an added token, a stretch is marked again.
  const bool marks_stretches =
      options->front == FrontMark::of_stretch || options->front == FrontMark::prepended;
  plan.may_cut_at_lines = !plan.normalizer && !(marks_stretches && parts.added_tokens.have_newlines());
  plan.cuts_only_before = model->line_starts();
  plan.splitter = model->splitter(options->splits_at_marks);
  plan.model = std::move(model);
  return plan;
}

// `make_model` gets what stands for a mark in tokens.
template <typename MakeModel>
std::optional<FastPlan> marked_plan(const Json& file, const Parts& parts, MakeModel make_model) {
  const std::optional<MarkedTextOptions> options = metaspace_of(part_of(file, "pre_tokenizer"));
  if (!options || !options->splits_at_marks) return std::nullopt;
  Normalizing normalizing = normalizing_of(part_of(file, "normalizer"), parts.normalizer.get());
  FastPlan plan;
  plan.normalizer = std::move(normalizing.rewriter);
  plan.marker = make_marked_text(*options);
  plan.may_cut_at_lines =
      options->splits_at_white_space && normalizing.newlines != Normalizing::Newlines::unknown;
  plan.splitter = make_mark_splitter();
  plan.model = make_model(utf8_of(std::u32string(1, options->replacement)));
  if (!plan.marker || !plan.model) return std::nullopt;
  return plan;
}

std::optional<FastPlan> bpe_plan(const Json& file, const Parts& parts, const Bpe& bpe, bool use_simd) {
  std::optional<FastPlan> plan = byte_level_plan(file, parts, bpe, use_simd);
  if (!plan) plan = sentence_plan(file, parts, bpe);
  if (plan || bpe.options().byte_fallback) return plan;  // With it a mark may become three bytes.
  return marked_plan(file, parts,
                     [&](std::string mark) { return make_reference_model(bpe, std::move(mark)); });
}

}  // namespace

std::optional<FastPlan> fast_plan_of(const Json& file, const Parts& parts, bool use_simd) {
  const Model* const model = parts.model.get();
  if (const auto* bpe = dynamic_cast<const Bpe*>(model)) return bpe_plan(file, parts, *bpe, use_simd);
  if (const auto* words = dynamic_cast<const WordPiece*>(model)) return wordpiece_plan(file, parts, *words);
  if (const auto* unigram = dynamic_cast<const Unigram*>(model))
    return marked_plan(file, parts,
                       [&](const std::string& mark) { return TrieUnigram::make(*unigram, mark); });
  return std::nullopt;
}

}  // namespace lmemo::tokenizer
