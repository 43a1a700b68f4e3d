#include "tokenizer/reference/length_rules.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxLength = uint64_t{1} << 40;
// Padding is memory: a file must not ask for more than this.
constexpr uint64_t kMaxPaddedLength = uint64_t{1} << 26;

Result<bool> is_left(const Fields& fields) {
  LMEMO_ASSIGN(const std::string direction, fields.text("direction"));
  if (direction == "Left") return true;
  if (direction == "Right") return false;
  return refusal(fields.where("direction"), "expected \"Left\" or \"Right\", found " + shown(direction));
}

}  // namespace

void Truncation::apply(std::vector<uint32_t>& ids, size_t room) const {
  const uint64_t keep = max_length - room;
  if (ids.size() <= keep) return;
  if (from_left) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(keep));
  ids.resize(keep);
}

Result<std::optional<Truncation>> truncation_in(const Json& json, size_t added_count,
                                                const std::string& where) {
  if (json.is_null()) return std::optional<Truncation>();
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_TRY(fields.expect_only({"direction", "max_length", "strategy", "stride"}));
  LMEMO_TRY(fields.expect_no_null({"direction"}));
  Truncation truncation;
  LMEMO_ASSIGN(truncation.max_length, fields.number("max_length", kMaxLength));
  if (fields.find("direction")) {
    LMEMO_ASSIGN(truncation.from_left, is_left(fields));
  }
  LMEMO_ASSIGN(const std::string strategy, fields.text("strategy"));
  if (strategy != "LongestFirst" && strategy != "OnlyFirst")
    return refusal(fields.where("strategy"), shown(strategy) + " has no meaning for single texts");
  LMEMO_ASSIGN(const uint64_t stride, fields.number("stride", kMaxLength));
  if (truncation.max_length < added_count || stride >= truncation.max_length - added_count)
    return refusal(where, "max_length " + std::to_string(truncation.max_length) + " leaves no room behind " +
                              std::to_string(added_count) + " special tokens and stride " +
                              std::to_string(stride));
  return std::optional<Truncation>(truncation);
}

uint64_t Padding::target(uint64_t longest) const {
  uint64_t length = fixed_length.value_or(longest);
  if (multiple_of > 0 && length % multiple_of > 0) length += multiple_of - length % multiple_of;
  return length;
}

void Padding::apply(std::vector<uint32_t>& ids, uint64_t target_length) const {
  if (ids.size() >= target_length) return;
  ids.insert(on_left ? ids.begin() : ids.end(), target_length - ids.size(), pad_id);
}

Result<std::optional<Padding>> padding_in(const Json& json, const std::string& where) {
  if (json.is_null()) return std::optional<Padding>();
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_TRY(fields.expect_only(
      {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"}));
  Padding padding;
  LMEMO_ASSIGN(const Json* strategy, fields.get("strategy"));
  if (strategy->is_object() && strategy->size() == 1 && strategy->contains("Fixed")) {
    LMEMO_ASSIGN(const uint64_t length,
                 number_in((*strategy)["Fixed"], kMaxPaddedLength, fields.where("strategy.Fixed")));
    padding.fixed_length = length;
  } else if (*strategy != "BatchLongest") {
    return refusal(fields.where("strategy"), "expected \"BatchLongest\" or {\"Fixed\": n}");
  }
  LMEMO_ASSIGN(padding.on_left, is_left(fields));
  LMEMO_ASSIGN(padding.multiple_of, fields.number_or("pad_to_multiple_of", 0, kMaxPaddedLength));
  LMEMO_ASSIGN(const uint64_t pad_id, fields.number("pad_id", std::numeric_limits<uint32_t>::max()));
  padding.pad_id = static_cast<uint32_t>(pad_id);
  LMEMO_TRY(fields.number("pad_type_id", std::numeric_limits<uint32_t>::max()));
  LMEMO_TRY(fields.text("pad_token"));
  return std::optional<Padding>(padding);
}

Result<LengthRules> length_rules_for(const EncodeOptions& options, const std::optional<Truncation>& of_file,
                                     const std::optional<Padding>& padding_of_file, size_t added_count) {
  LengthRules rules{of_file, padding_of_file};
  if (options.truncation) {
    const auto [max_length, stride, from_left] = *options.truncation;
    // HuggingFace fails on such a stride when it comes to cut, and does not cut at all where the template is longer.
    const uint64_t room = max_length < added_count ? 0 : max_length - added_count;
    if (max_length < added_count || (stride > 0 && stride >= room))
      return Error{ErrorCode::invalid_argument, "truncation: max_length " + std::to_string(max_length) +
                                                    " leaves no room behind " + std::to_string(added_count) +
                                                    " special tokens and stride " + std::to_string(stride)};
    rules.truncation = Truncation{max_length, from_left};
  }
  if (options.padding) {
    const auto& [length, multiple_of, pad_id, on_left] = *options.padding;
    if (std::max(length.value_or(0), multiple_of) > kMaxPaddedLength)
      return Error{ErrorCode::invalid_argument,
                   "padding: expected at most " + std::to_string(kMaxPaddedLength) + ", found " +
                       std::to_string(std::max(length.value_or(0), multiple_of))};
    rules.padding = Padding{length, multiple_of, pad_id, on_left};
  }
  return rules;
}

}  // namespace lmemo::tokenizer
