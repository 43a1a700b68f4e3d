#include "tokenizer/fast/fast_plan.h"

#include <nlohmann/json.hpp>

#include "tokenizer/fast/byte_level_bpe.h"
#include "tokenizer/fast/split_pattern.h"

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
  SplitRules rules;
  bool adds_space;
};

std::optional<ByteLevelSplit> byte_level_split_of(const Json& pre_tokenizer) {
  if (is_type(pre_tokenizer, "ByteLevel")) {
    if (!flag(pre_tokenizer, "use_regex", true)) return std::nullopt;
    return ByteLevelSplit{kGpt2Rules, flag(pre_tokenizer, "add_prefix_space", true)};
  }
  if (!is_type(pre_tokenizer, "Sequence")) return std::nullopt;
  const Json& steps = part_of(pre_tokenizer, "pretokenizers");
  if (steps.size() != 2 || !is_type(steps[0], "Split") || !is_type(steps[1], "ByteLevel")) return std::nullopt;
  const Json& regex = part_of(part_of(steps[0], "pattern"), "Regex");
  const bool is_plain = part_of(steps[0], "behavior") == "Isolated" && !flag(steps[0], "invert", false) &&
                        !flag(steps[1], "use_regex", true) && !flag(steps[1], "add_prefix_space", true);
  if (!is_plain || !regex.is_string()) return std::nullopt;
  const std::optional<SplitRules> rules = split_rules_of(regex.get_ref<const std::string&>());
  if (!rules) return std::nullopt;
  return ByteLevelSplit{*rules, false};
}

FastPlan::Normalizing normalizing_of(const Json& normalizer) {
  if (normalizer.is_null()) return FastPlan::Normalizing::nothing;
  if (is_type(normalizer, "NFC")) return FastPlan::Normalizing::nfc;
  if (is_type(normalizer, "Sequence") && part_of(normalizer, "normalizers").empty())
    return FastPlan::Normalizing::nothing;
  return FastPlan::Normalizing::by_reference;
}

}  // namespace

std::optional<FastPlan> fast_plan_of(const Json& file, const Parts& parts, bool use_simd) {
  const auto* const bpe = dynamic_cast<const Bpe*>(parts.model.get());
  const std::optional<ByteLevelSplit> split = byte_level_split_of(part_of(file, "pre_tokenizer"));
  if (!bpe || !split) return std::nullopt;
  std::unique_ptr<ByteLevelBpe> model = ByteLevelBpe::make(*bpe);
  if (!model) return std::nullopt;

  FastPlan plan;
  plan.normalizing = normalizing_of(part_of(file, "normalizer"));
  plan.adds_space = split->adds_space;
  plan.may_cut_at_lines = plan.normalizing != FastPlan::Normalizing::by_reference && !split->adds_space;
  plan.splitter = make_pattern_splitter(split->rules, model->borders(), use_simd);
  plan.model = std::move(model);
  return plan;
}

}  // namespace lmemo::tokenizer
