#include "store/field_filter.h"

#include <algorithm>

namespace lmemo {

FieldFilter::FieldFilter(const ScanFilter& filter) : kind_(filter.kind) {
  for (const Field& field : filter.fields) wanted_.push_back(encode_field(field));
}

void FieldFilter::prepare(const Segment& segment) {
  prepared_ = &segment;
  has_all_ = true;
  numbers_.clear();
  if (!segment.fields()) return;
  for (const std::string& wanted : wanted_) {
    const std::optional<uint32_t> number = segment.fields()->number_of(wanted);
    if (!number) has_all_ = false;
    numbers_.push_back(number.value_or(0));
  }
}

bool FieldFilter::matches(const Segment& segment, uint32_t ordinal) {
  if (!kind_.empty() && segment.kind_name(segment.entry(ordinal).kind) != kind_) return false;
  if (wanted_.empty()) return true;
  if (prepared_ != &segment) prepare(segment);
  if (!has_all_) return false;
  if (segment.fields())
    return std::all_of(numbers_.begin(), numbers_.end(),
                       [&](uint32_t number) { return segment.fields()->has(ordinal, number); });
  const Result<std::string> encoding = segment.encoding_of(ordinal);
  std::vector<std::string_view> fields;
  if (!encoding.ok() || !split_encoding(*encoding, fields)) return false;
  return std::all_of(wanted_.begin(), wanted_.end(), [&](const std::string& wanted) {
    return std::find(fields.begin(), fields.end(), wanted) != fields.end();
  });
}

}  // namespace lmemo
